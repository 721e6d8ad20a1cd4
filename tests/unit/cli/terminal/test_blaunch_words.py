"""What blaunch makes of its words: options, hosts, host files, the command; and its frames."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.wire import taskwire
from cli import mpirun_lsf
from cli.client.context import Fail
from cli.terminal import taskframes
from cli.terminal.targets import LONGEST, by_name, choose, is_host, read_hostfile, read_words, slots_of

SLOTS = [("host1", 2), ("host2.site.org", 1)]
HERE = ("host1", "localhost", "realname")


def chosen(line: list[str], path: str = "/bin:/usr/bin") -> tuple[list[str], list[str]]:
    options, words = read_words(line)
    return choose(options, words, SLOTS, HERE, path)


def test_a_host_and_a_command() -> None:
    """As rsh has it; the command's own options are its own."""
    assert chosen(["-n", "host1", '"/usr/bin/proxy"', "-n", "--x", "1"]) == (["host1"], ['"/usr/bin/proxy"', "-n", "--x", "1"])
    assert chosen(["host2", " orted", "-mca"]) == (["host2"], [" orted", "-mca"])


def test_options_end_at_the_first_word() -> None:
    options, words = read_words(["-no-shell", "-n", "host1", "-z", "x"])
    assert set(options) == {"no-shell", "n"}
    assert words == ["host1", "-z", "x"]
    assert read_words(["--", "-odd"]) == ({}, ["-odd"])


def test_a_host_may_be_given_by_its_address() -> None:
    """As of a job with roles; names and what means this host stay as they are."""
    peers = "host1:2:10.0.0.1 host2.site.org:1:fd00::2 host3:1:10.0.0.1"
    given = ["10.0.0.1", "fd00::2", "host1", "localhost", "10.0.0.9"]
    assert by_name(given, ["host1"], HERE, peers) == ["host1", "host2.site.org", "host1", "localhost", "10.0.0.9"]
    assert by_name(["10.0.0.1"], ["host1"], HERE, "") == ["10.0.0.1"]


def test_a_list_of_hosts() -> None:
    """The form that Intel MPI calls."""
    assert chosen(["-z", "host1 host2", "/x/proxy", "--y"]) == (["host1", "host2"], ["/x/proxy", "--y"])


def test_without_a_host_one_task_a_slot() -> None:
    every = ["host1", "host1", "host2.site.org"]
    assert chosen(["hostname"]) == (every, ["hostname"])
    assert chosen(["/opt/run", "a", "b"]) == (every, ["/opt/run", "a", "b"])
    assert chosen(["echo", "$LSF_PM_TASKID"]) == (every, ["echo", "$LSF_PM_TASKID"])
    assert chosen(["X=1 cmd", "b"]) == (every, ["X=1 cmd", "b"])


def test_a_word_that_is_no_program_is_a_host_even_outside_the_job() -> None:
    """It is then refused by name, not run as a command."""
    assert chosen(["host9", "true"]) == (["host9"], ["true"])
    assert chosen(["localhost", "true"]) == (["localhost"], ["true"])
    assert chosen(["HOST2", "true"]) == (["HOST2"], ["true"])


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (["-z"], "-z: option requires an argument"),
        (["-q", "host1", "x"], "-q: unknown option"),
        (["-z", "a", "-u", "b", "x"], "-z and -u"),
        (["-no-shell", "-use-login-shell", "host1", "x"], "only one of them"),
        ([], "a command is missing"),
        (["host1"], "a command is missing"),
        (["-z", " ", "x"], "-z: no host is named"),
        (["-u", "/nonexistent/file", "x"], "/nonexistent/file: No such file"),
    ],
)
def test_wrong_words(line: list[str], what: str) -> None:
    with pytest.raises(Fail) as failed:
        chosen(line)
    assert what in failed.value.text


def test_a_host_file(tmp_path: Path) -> None:
    """One host a line, comments and further words left out."""
    file = tmp_path / "hosts"
    file.write_text("host1 slots=2\n\n# all\nhost2 # last\nhost1\n")
    assert read_hostfile(str(file)) == ["host1", "host2", "host1"]
    file.write_text("# none\n")
    with pytest.raises(Fail, match="no host"):
        read_hostfile(str(file))
    with file.open("w") as text:
        text.truncate(LONGEST + 1)
    with pytest.raises(Fail, match="larger than"):
        read_hostfile(str(file))


def test_names_with_and_without_a_domain() -> None:
    assert is_host("host2", ["host2.site.org"], ())
    assert is_host("host2.other.org", ["host2"], ())
    assert not is_host("10.0.0.2", ["10.0.0.3"], ())
    assert not is_host("", ["host1"], ())


def test_the_list_of_slots() -> None:
    assert slots_of("a 2 b 1 ") == [("a", 2), ("b", 1)]
    for wrong in ("a", "a b", "a 1 b"):
        with pytest.raises(Fail):
            slots_of(wrong)


KINDS = st.integers(1, 10)
NUMBERS = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(KINDS, NUMBERS, st.binary(max_size=50))), st.lists(st.integers(1, 40)))
def test_frames_of_the_command_are_those_of_the_shepherd(frames: list[tuple[int, int, bytes]], cuts: list[int]) -> None:
    """However the stream is cut."""
    data = b"".join(taskframes.pack(*frame) for frame in frames)
    assert data == b"".join(taskwire.pack(taskwire.Frame(kind, 0, 0, number, body)) for kind, number, body in frames)
    reader, buffer = taskwire.FrameReader(), bytearray()
    theirs, ours = [], []
    for cut in [*cuts, len(data)]:
        piece, data = data[:cut], data[cut:]
        theirs += [(frame.kind, frame.number, frame.body) for frame in reader.feed(piece)]
        buffer += piece
        ours += taskframes.take(buffer)
    assert theirs == ours == frames


def test_the_same_numbers_on_both_sides() -> None:
    names = [name for name in vars(taskframes) if name.isupper() and name[0] != "_" and name != "TYPE_CHECKING"]
    assert len(names) > 10
    assert [getattr(taskframes, name) for name in names] == [getattr(taskwire, name) for name in names]


def test_mpirun_lsf_finds_the_librarys_launcher(tmp_path: Path) -> None:
    """-a openmpi, -a intelmpi and -a mpich start their own."""
    for folder, name in (("a", "mpirun"), ("b", "mpiexec.hydra"), ("b", "mpiexec")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text("#!/bin/sh\n")
        (tmp_path / folder / name).chmod(0o755)
    path = f"{tmp_path}/a:{tmp_path}/b"
    assert mpirun_lsf.find_launcher("openmpi", path) == f"{tmp_path}/a/mpirun"
    assert mpirun_lsf.find_launcher("intelmpi", path) == f"{tmp_path}/b/mpiexec.hydra"
    assert mpirun_lsf.find_launcher("mpich", path) == f"{tmp_path}/b/mpiexec.hydra"
    assert mpirun_lsf.find_launcher("", path) == f"{tmp_path}/a/mpirun"
    assert mpirun_lsf.find_launcher("openmpi", f"{tmp_path}/b") == ""


def test_mpirun_lsf_knows_a_library_by_what_lies_beside_its_launcher(tmp_path: Path) -> None:
    """A folder that two libraries share, and one of another library in front of it."""
    both = "mpirun orterun mpirun.openmpi ompi_info mpiexec.mpich hydra_persist"
    for folder, names in [("other", "mpirun mpiexec"), ("both", both)]:
        (tmp_path / folder).mkdir()
        for name in names.split():
            (tmp_path / folder / name).write_text("#!/bin/sh\n")
            (tmp_path / folder / name).chmod(0o755)
    path = f"{tmp_path}/other:{tmp_path}/both"
    assert mpirun_lsf.find_launcher("openmpi", path) == f"{tmp_path}/both/mpirun.openmpi"
    assert mpirun_lsf.find_launcher("mpich", path) == f"{tmp_path}/both/mpiexec.mpich"
    assert mpirun_lsf.find_launcher("", path) == f"{tmp_path}/other/mpirun"

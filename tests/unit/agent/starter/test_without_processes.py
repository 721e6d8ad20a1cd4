"""Frames, lines of ranks, limits, the journal and END: what needs no second process."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.starter.process import account, spec, tasks
from agent.starter.protocol.codec import text
from agent.starter.protocol.part import NO_RANK, TaskSpec
from agent.starter.protocol.reports import Ended, Lost, PartState, write_report
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import Part
from agent.starter.system import kernel, proctree, rlimits
from agent.starter.system.stdio import MAX_LINE, Lines
from agent.starter.wire.frames import FrameError, FrameReader, pack

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
JSON = st.recursive(LEAVES, lambda x: st.lists(x) | st.dictionaries(st.text(), x), max_leaves=9)


@given(st.lists(st.dictionaries(st.text(), JSON, max_size=4), max_size=5), st.integers(1, 40))
def test_frames_survive_any_cut(objects: list[dict[str, object]], size: int) -> None:
    data = b"".join(map(pack, objects))
    reader = FrameReader()
    found: list[dict[str, object]] = []
    for at in range(0, len(data), size):
        found += reader.feed(data[at : at + size])
    assert found == objects


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_an_error(data: bytes) -> None:
    try:
        FrameReader(limit=100).feed(data)
    except FrameError:
        pass


def test_undecodable_file_names_pass() -> None:
    name = os.fsdecode(b"/tmp/\xff\xe9")
    assert FrameReader().feed(pack({"path": name})) == [{"path": name}]


def test_oversized_frames_are_refused_before_they_come() -> None:
    with pytest.raises(FrameError):
        FrameReader().feed((65 << 20).to_bytes(4, "big"))


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_lines_lose_nothing_and_pass_only_whole_lines(chunks: list[bytes]) -> None:
    lines = Lines()
    passed = [lines.feed(c) for c in chunks]
    assert all(p == b"" or p.endswith(b"\n") for p in passed)
    text = b"".join(chunks)
    assert b"".join(passed) + lines.end() == text + (b"\n" if text and not text.endswith(b"\n") else b"")


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_every_line_gets_its_label(chunks: list[bytes]) -> None:
    lines = Lines(b"[3] ")
    text = b"".join([lines.feed(c) for c in chunks]) + lines.end()
    plain = b"".join(chunks)
    wanted = plain.split(b"\n")
    if wanted[-1] == b"":
        wanted.pop()
    assert text == b"".join(b"[3] " + line + b"\n" for line in wanted)


def test_an_endless_line_goes_out_in_pieces() -> None:
    assert Lines().feed(b"x" * (MAX_LINE + 1)) == b"x" * (MAX_LINE + 1)


def test_limits_are_clamped_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert rlimits.clamp({"NOFILE": (soft, -1), "NONSENSE": (1, 1)}) == rlimits.NO_CHANGE
    limits = rlimits.clamp({"NOFILE": (hard + 1, hard + 1)})
    assert limits.wanted == ([] if soft == hard else [(resource.RLIMIT_NOFILE, hard, hard)])
    lowered = rlimits.clamp({"NOFILE": (10, 20)})
    assert lowered == rlimits.Limits([(resource.RLIMIT_NOFILE, 10, 20)], [(resource.RLIMIT_NOFILE, soft, hard)], True)
    assert rlimits.clamp({"NOFILE": (10, -1)}).in_child is False


def test_environment_of_a_part_is_merged_and_marked() -> None:
    template = spec.Template({"env": {"A": "1", "B": "1"}, "argv": ["x"], "title": "t"})
    one = spec.Spec(template, {"uid": "u", "env": {"B": "2", "bad=name": "x", "nul": "a\0b"}, "argv": None})
    assert one.env == {"A": b"A=1", "B": b"B=2", "LAVA_ATTEMPT": b"LAVA_ATTEMPT=u"}
    assert one.part.argv is None
    assert one.tasks == (TaskSpec(NO_RANK, {}),)
    assert template.env == {"A": b"A=1", "B": b"B=1"}


def test_where_a_command_is_looked_for() -> None:
    assert tasks.candidates("./x", "/a:/b") == (b"./x",)
    assert tasks.candidates("x", "/a::/b") == (b"/a/x", b"./x", b"/b/x")
    assert tasks.candidates("x", None)[0] == b"/bin/x"


@pytest.mark.parametrize("nice", [0, 1])
def test_start_says_why_it_could_not(tmp_path: Path, nice: int) -> None:
    null = os.open("/dev/null", os.O_RDWR)
    try:
        with pytest.raises(tasks.ExecError) as e:
            tasks.start(["x"], (bytes(tmp_path / "x"),), [], (null, null, null), nice=nice)
        assert e.value.errno == errno.ENOENT
    finally:
        os.close(null)


@pytest.mark.parametrize("look", [kernel.look_at_ended_child, kernel._look_by_os])
def test_an_ended_child_is_seen_before_it_is_reaped(look: object) -> None:
    assert callable(look)
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    seen = look()
    assert seen[:2] == (pid, 9)
    assert os.waitpid(pid, 0) == (pid, 9)


def test_starttime_and_children() -> None:
    assert proctree.starttime(os.getpid()) > 0
    assert proctree.starttime(2**22 + 1) == 0
    pid = os.fork()
    if pid == 0:
        signal.pause()
    try:
        assert pid in proctree.children(os.getpid())
        assert pid in proctree.below([os.getpid()])
        assert pid in proctree._below_by_scan([os.getpid()])
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_end_sums_its_tasks() -> None:
    a, b = account.Task(0, 11), account.Task(1, 12)
    a.ended((11, 0, 1.5, 0.5, 100))
    b.ended((12, 256, 2.0, 0.25, 300))
    used = account.Used()
    end = account.end_of([a, b], 256, 5.0, False, used)
    assert (end.utime, end.stime, end.maxrss_kb, end.status) == (3.5, 0.75, 300, 256)
    assert [task.rank for task in end.tasks] == [0, 1]
    used.add((13, 0, 1.0, 2.0, 400))
    end = account.end_of([a, b], 256, 5.0, False, used)
    assert (end.utime, end.stime, end.maxrss_kb) == (4.5, 2.75, 400)


class Disk:
    """A journal in a folder, loaded anew each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def load(self) -> tuple[int, dict[str, PartState]]:
        former = Journal(self.folder).load()
        return former.seq, {uid: PartState.GONE if p.end else p.state for uid, p in former.parts.items()}


def test_the_journal_knows_what_was_taken_ended_and_forgotten(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    assert disk.load() == (0, {})
    journal = Journal(str(tmp_path))
    journal.begin("boot", 3, [])
    parts = [Part(uid, 1, 1, number) for number, uid in enumerate(["a", "b", "c", "d"], 1)]
    journal.take(4, parts)
    end = account.end_of([], 0, 1.0, False, account.Used())
    lines = [text(write_report(Ended(uid, end))) for uid in "ab"]
    Path(journal.end_path(1)).write_bytes(b"\n".join([*lines, b'{"uid":']))
    journal.forget(["c"])
    parts[3].state, parts[3].reason = PartState.LOST, Lost("d", "why")
    journal.over(parts[3])
    with open(tmp_path / "journal", "ab") as f:
        f.write(b'{"seq":99,"par')
    wanted = (4, {"a": PartState.GONE, "b": PartState.PREPARING, "d": PartState.LOST})
    assert disk.load() == wanted, "an end file is believed about its own shepherd's parts only"
    former = Journal(str(tmp_path)).load()
    journal.begin("boot", former.seq, former.parts.values())
    journal.drop_former_ends()
    assert disk.load() == wanted

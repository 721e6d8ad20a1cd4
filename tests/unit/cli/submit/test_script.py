"""Where a submission's command comes from."""

from __future__ import annotations

import os
import pty
import subprocess
import threading
from pathlib import Path

import pytest

from cli.client.context import Context, Fail
from cli.submit.script import find_work, has_command, shown


def work_of(folder: Path, *words: str, parse: bool = True, spool: bool = False):
    return find_work(Context(list(words), str(folder), {"PATH": "/usr/bin:/bin"}), list(words), parse, spool)


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


SCRIPT = "#!/bin/sh\n#BSUB -n 2\necho hi\n"


def test_a_file_is_taken_whole_with_its_directives(tmp_path: Path):
    write(tmp_path / "t.sh", SCRIPT)
    for word in ("t.sh", "./t.sh", str(tmp_path / "t.sh")):
        work = work_of(tmp_path, word)
        assert (work.command, work.script, work.directives) == (word, SCRIPT, SCRIPT)


def test_without_the_sites_wish_a_file_is_a_command(tmp_path: Path):
    write(tmp_path / "t.sh", SCRIPT)
    work = work_of(tmp_path, "./t.sh", "x", parse=False)
    assert (work.command, work.script, work.directives) == ("./t.sh x", "", "")


def test_a_spooled_file_keeps_its_directives_to_itself(tmp_path: Path):
    write(tmp_path / "t.sh", SCRIPT)
    work = work_of(tmp_path, "t.sh", parse=False, spool=True)
    assert (work.script, work.directives) == (SCRIPT, "")
    with pytest.raises(Fail, match=r"^nosuch: No such file"):
        work_of(tmp_path, "nosuch", spool=True)


def test_programs_and_commands_are_no_scripts(tmp_path: Path):
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0\0#BSUB")
    write(tmp_path / "tool", "#!/bin/sh\necho\n", 0o755)
    write(tmp_path / "true", "just a note\n")
    (tmp_path / "folder").mkdir()
    for words in (("./binary",), (str(tmp_path / "tool"), "a"), ("true",), ("folder",), ("sleep 5; ls",), ("nosuch",)):
        assert work_of(tmp_path, *words).script == ""


def test_a_folder_that_is_gone_has_no_files():
    """A server of commands said `output: No such file or directory`."""
    gone = Context(["true"], "", {})
    with pytest.raises(Fail, match=r"^The current working directory no longer exists$"):
        find_work(gone, ["true"], True)
    assert gone.path("/bin/true") == "/bin/true"


def test_arguments_reach_a_script(tmp_path: Path):
    write(tmp_path / "plain.sh", '#!/bin/sh -e\n#BSUB -n 2\necho "$1|$2"\n')
    work = work_of(tmp_path, "plain.sh", "a b", "it's")
    assert work.command == 'plain.sh "a b" it\\\'s'
    run = write(tmp_path / "spooled", work.script, 0o755)
    assert subprocess.run([run], capture_output=True, text=True, check=True).stdout == "a b|it's\n"
    write(tmp_path / "exec.sh", SCRIPT, 0o755)
    work = work_of(tmp_path, "exec.sh", "x")
    assert (work.command, work.script, work.directives) == (f"{tmp_path}/exec.sh x", "", SCRIPT)
    write(tmp_path / "t.py", "#!/usr/bin/python3\n#BSUB -n 2\n")
    with pytest.raises(Fail, match=r"^t\.py: not executable"):
        work_of(tmp_path, "t.py", "x")


def from_stdin(data: bytes):
    ours, theirs = os.pipe()
    os.write(theirs, data)
    os.close(theirs)
    try:
        return find_work(Context([], "/", {}, stdin=ours), [], False)
    finally:
        os.close(ours)


def test_stdin_is_a_script_with_directives():
    work = from_stdin(SCRIPT.encode())
    assert (work.command, work.script, work.directives) == ("#!/bin/sh;#BSUB -n 2;echo hi", SCRIPT, SCRIPT)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "No command is specified$"),
        (b"#BSUB -n 2\n\n", "No command is specified$"),
        (b"\x7fELF\0", "standard input: not a text file"),
        (b"echo \xff\n", "standard input: not a text in UTF-8"),
    ],
)
def test_what_is_no_script_is_refused(data, why):
    with pytest.raises(Fail, match=why):
        from_stdin(data)


def test_a_terminal_is_prompted():
    terminal, end = pty.openpty()
    shown_at, out = os.pipe()
    typing = threading.Thread(target=os.write, args=(terminal, b"echo hi\n\x04"))
    typing.start()
    work = find_work(Context([], "/", {}, stdin=end, stdout=out, stderr=out), [], False)
    typing.join()
    assert work.script == "echo hi\n"
    assert os.read(shown_at, 100) == b"bsub> bsub> "
    for descriptor in (terminal, end, shown_at, out):
        os.close(descriptor)


def test_what_counts_as_a_command():
    assert not has_command("#!/bin/sh\n  # x\n\n")
    assert has_command("#!/bin/sh\n  x # y\n")
    assert shown("a\nb\n\n") == "a;b"
    assert len(shown("x\n" * 100000)) == 4096

"""How a task is started, and why it is not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.starter.process import tasks


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


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, for chroot and another user")
@pytest.mark.parametrize(("name", "code", "said"), [("x", 126, "ermission denied"), ("no-such", 127, "command not found")])
def test_what_a_process_becomes_is_looked_for_as_a_shell_does(tmp_path: Path, name: str, code: int, said: str) -> None:
    """A folder of PATH that the user may not search has no program; one that may not be executed is another matter."""
    tmp_path.chmod(0o755)
    for folder, mode in (("hidden", 0o700), ("seen", 0o755)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder).chmod(mode)
    (tmp_path / "seen" / "x").write_text("")
    program = (
        "import os; from agent.starter.process import tasks; "
        f"os.chroot({str(tmp_path)!r}); os.setresuid(*[65534] * 3); tasks.become([{name!r}])"
    )
    words, env = [sys.executable, "-c", program], {"PATH": "/hidden:/seen"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert said in done.stderr

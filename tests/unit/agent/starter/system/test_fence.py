"""What is left in the cgroups of a starter that ends, or of a former one, is ended."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from agent.starter.system import fence


def test_what_is_ended_forks_no_more_meanwhile_and_the_next_starter_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder stands for the group, and names its process for as long as it is looked at; a pipe tells all that is written."""
    monkeypatch.setattr(fence, "PATIENCE", 0.2)
    monkeypatch.setattr(fence, "MOMENT", 0.0)
    group = tmp_path / "lava-1"
    group.mkdir()
    os.mkfifo(group / "pids.max")
    limit = os.open(group / "pids.max", os.O_RDWR | os.O_NONBLOCK)
    with subprocess.Popen(["/bin/sleep", "1000"]) as left:
        (group / "cgroup.procs").write_text(f"{left.pid}\n")
        fence.leave(fence.Fence([str(group)], again=False))
        assert left.wait() == -signal.SIGKILL
    wrote = os.read(limit, 4096).decode()
    os.close(limit)
    assert wrote.startswith("0")
    assert wrote.strip("0") == "max"

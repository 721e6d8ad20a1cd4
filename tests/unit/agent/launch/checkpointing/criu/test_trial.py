"""The trial of CRIU with a program that hangs in its place: it gives up by itself and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.checkpoint import criu
from agent.launch.checkpointing.asked import CheckpointError
from agent.launch.checkpointing.criu import command, trial
from tests.support.wait import SLOW

ROOT = Path(criu.__file__).parents[2]
TRIAL = """
import os, sys
from agent.launch.checkpointing.asked import CheckpointError
from agent.launch.checkpointing.criu import trial
trial.WITHIN, trial.WITHIN_ALL, trial._PROGRAM = 600.0, int(sys.argv[2]), ["sleep", sys.argv[3]]
try:
    trial.run(sys.argv[1])
except CheckpointError as e:
    print(e)
"""


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """One that nobody may use, which the trial becomes where the tests run as root."""
    try:
        command.check_namespaces()
    except CheckpointError as e:
        pytest.skip(str(e))
    tmp_path.chmod(0o777)
    return tmp_path


def program(folder: Path, text: str) -> str:
    path = folder / "criu"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def running(word: str) -> list[str]:
    """Command lines that have the word."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        found += [" ".join(line)] if word in line else []
    return found


def test_a_trial_that_takes_too_long_leaves_nothing(open_folder: Path) -> None:
    length = f"{10**6 + os.getpid()}"
    hanging = program(open_folder, f"exec sleep {length}")
    done = subprocess.run(
        [sys.executable, "-c", TRIAL, hanging, "2", length],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(open_folder)},
        capture_output=True,
        text=True,
        timeout=120 * SLOW,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("it took longer than 2 seconds\n", "")
    assert running(length) == []
    assert [path.name for path in open_folder.iterdir()] == ["criu"]
    assert trial.WITHIN_ALL < criu.WITHIN - 10, "the agent waits for that"


def test_the_trial_has_nothing_of_the_agents_environment(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD_OF_THE_AGENT", "secret")
    told = open_folder / "told"
    assert criu._try(program(open_folder, f"cat /proc/$PPID/environ /proc/self/environ > {told}; exit 1"))
    assert b"PATH=" in told.read_bytes()
    assert b"secret" not in told.read_bytes()

"""The site's own health program: what it says, and what an agent says of one that hangs, is missing, or is not root's."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent.monitor.health import Health, seconds
from tests.support.live.inside import alive
from tests.support.wait import wait_until


def program(folder: Path, text: str) -> str:
    path = folder / "health"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    return tmp_path


def asked(path: str, timeout: str = "20", as_root: bool = False) -> str:
    return asyncio.run(Health({"LAVA_HEALTH": path, "LAVA_HEALTH_TIMEOUT": timeout}, as_root).ask())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("echo all is well", ""),
        ("echo; echo no /scratch; echo more; exit 1", "no /scratch"),
        ("exit 3", "ended with 3"),
        (r"printf 'a\033[2Jb\n'; exit 1", "a?[2Jb"),
        ("yes bad | head -c 1000000; exit 1", "bad"),
        ("kill -9 $$", "ended with -9"),
    ],
)
def test_its_first_line_is_the_reason_where_it_fails(folder: Path, text: str, said: str) -> None:
    found = asked(program(folder, text))
    assert found.endswith(said)
    assert bool(found) is bool(said)


def test_one_that_hangs_is_a_reason_and_leaves_nothing(folder: Path) -> None:
    path = program(folder, f"sleep 1000 & echo $! > {folder}/pid; wait")
    assert asked(path, "0.5") == f"{path} did not end within 0.5 s"
    pid = int((folder / "pid").read_text())
    wait_until(lambda: not alive(pid), 10, "what the program started to be gone")


def test_one_that_is_missing_is_a_reason(folder: Path) -> None:
    assert "is not the path of a program" in asked(str(folder / "none"))
    assert "is not the path of a program" in asked("health")


@pytest.mark.skipif(os.geteuid() != 0, reason="whose file it is only root can choose")
def test_root_runs_only_what_is_roots(folder: Path) -> None:
    path = program(folder, "exit 0")
    assert asked(path, as_root=True) == ""
    os.chmod(path, 0o777)
    assert "others than root may write it" in asked(path, as_root=True)


def test_other_checks_count_too() -> None:
    away = "users cannot be looked up: no answer"
    health = Health({}, False, [lambda: "", lambda: away])
    assert health.line() == away
    assert Health({}, False, [lambda: ""]).line() == ""


def test_numbers_that_are_none_are_the_defaults() -> None:
    assert [seconds(text, 7.0) for text in ("", "x", "0", "-1", "5")] == [7.0, 7.0, 7.0, 7.0, 5.0]

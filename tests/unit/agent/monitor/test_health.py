"""The site's own health program: what it says, and what an agent says of one that hangs, is missing, or is not root's."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from agent.monitor.health import GpuHealth, Health
from config.model.site_params import SiteParams
from tests.support.processes import is_alive
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


def asked(path: str, timeout: float = 20, as_root: bool = False) -> str:
    return asyncio.run(Health(SiteParams(lava_health=path, lava_health_timeout=timeout), as_root).ask())


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
    assert asked(path, 0.5) == f"{path} did not end within 0.5 s"
    pid = int((folder / "pid").read_text())
    wait_until(lambda: not is_alive(pid), 30, "what the program started to be gone")


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
    health = Health(SiteParams(), False, [lambda: "", lambda: away])
    assert health.line() == away
    assert Health(SiteParams(), False, [lambda: ""]).line() == ""


GPUS = {"GPU-a": 0, "GPU-b": 1}


def judged(path: str, change: str | None = None, until: Callable[[GpuHealth], bool] = bool) -> dict[str, str]:
    """What is said of each GPU once all is so; after the first round the program is rewritten."""
    health = GpuHealth(SiteParams(lava_gpu_health=path, lava_health_period=0.1, lava_health_timeout=0.5), False)
    rounds, over = 0, asyncio.Event()

    def gpus() -> Iterable[tuple[str, int]]:
        nonlocal rounds
        rounds += 1
        if rounds == 2 and change is not None:
            rewrite(Path(path), change)
        if rounds >= 4 and until(health):
            over.set()
        return GPUS.items()

    async def story() -> dict[str, str]:
        running = asyncio.create_task(health.run(gpus))
        async with asyncio.timeout(60):
            await over.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return {uuid: health.why(uuid) for uuid in GPUS}

    return asyncio.run(story())


def rewrite(path: Path, text: str) -> None:
    """The program is another from now on, or none."""
    path.unlink(missing_ok=True)
    if text:
        program(path.parent, text)


def test_a_program_judges_each_gpu_and_one_that_says_nothing_leaves_all_as_it_is(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ill = "echo $1 $2 is slow; [ $2 = GPU-a ]"
    path = program(folder, ill)
    assert judged(path) == {"GPU-a": "", "GPU-b": "1 GPU-b is slow"}
    assert judged(path, "exit 0", lambda health: not health.why("GPU-b")) == {"GPU-a": "", "GPU-b": ""}
    for text, why in (("sleep 1000", "did not end within 0.5 s"), ("kill -9 $$", "ended with -9"), ("", "is not the path")):
        rewrite(Path(path), ill)
        caplog.clear()
        assert judged(path, text) == {"GPU-a": "", "GPU-b": "1 GPU-b is slow"}
        told = [one.getMessage() for one in caplog.records if "is not judged" in one.getMessage()]
        assert len(told) == 2
        assert all(why in one for one in told)

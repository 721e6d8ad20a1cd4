"""CONTROL_ACTION: as whom it runs, and when root does not run it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.model.guarantees import ControlAction, Goal
from config.programs.as_admin import AsAdmin
from lavad.services.goals import action as module
from lavad.services.goals.action import Actions
from proto.names import Entry

GOAL = Goal("velocity", 5)
NOBODY = 65534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that anybody can write in, as none of pytest's."""
    with tempfile.TemporaryDirectory(prefix="lava-action-") as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def find(name: str) -> Entry | None:
    return {"boss": Entry("boss", NOBODY, NOBODY, "/", "/bin/sh"), "root": Entry("root", 0, 0, "/root", "/bin/sh")}.get(name)


def act(command: str, *, admin: str = "boss", root: bool = False, file: str = "/etc/passwd") -> None:
    actions = Actions(AsAdmin({"LSF_SERVERDIR": "/srv"}, lambda: [admin], root, find))
    asyncio.run(actions.run("a", GOAL, ControlAction(60, command, file)))


def test_the_command_is_the_shells(place: Path) -> None:
    act(f"echo `echo missed` $LSF_SERVERDIR >> {place}/log; echo $SECRET_OF_LAVAD >> {place}/log")
    assert (place / "log").read_text() == "missed /srv\n\n"


@AS_ROOT
def test_of_a_lavad_of_roots_it_runs_as_the_first_administrator(place: Path) -> None:
    act(f"id -u > {place}/who; id -G >> {place}/who; echo $USER >> {place}/who", root=True)
    uid, groups, name = (place / "who").read_text().splitlines()
    assert (uid, name) == (str(NOBODY), "boss")
    assert "0" not in groups.split()


@AS_ROOT
def test_root_runs_it_only_where_nobody_else_may_write_the_file(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = place / "lsb.serviceclasses"
    file.touch()
    act(f"touch {place}/ran", admin="root", root=True, file=str(file))
    assert not (place / "ran").exists()
    assert f"{file} is not run as root, as others than root may write it" in caplog.text
    act(f"touch {place}/ran", admin="root", root=True)
    assert (place / "ran").exists()


@AS_ROOT
def test_an_administrator_that_is_not_known_runs_nothing(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    act(f"touch {place}/ran", admin="gone", root=True)
    assert not (place / "ran").exists()
    assert "administrator gone is not known on this host" in caplog.text


def test_one_that_fails_or_hangs_is_in_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    act("echo no mail; exit 3")
    assert "CONTROL_ACTION of service class a, whose goal VELOCITY 5 is missed, exited with 3: no mail" in caplog.text
    monkeypatch.setattr(module, "SECONDS", 0.2)
    act("exec sleep 60")
    assert "did not end within" in caplog.text

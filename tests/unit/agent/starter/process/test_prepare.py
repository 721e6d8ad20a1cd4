"""The working folder of a part: made where the part says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.starter.process import prepare
from agent.starter.process.spec import Spec, Template


def spec(cwd: str, make: bool = True) -> Spec:
    return Spec(Template({"argv": ["x"], "title": "t", "make_cwd": make}), {"uid": "u", "cwd": cwd})


def test_a_folder_is_made_once_and_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "alice" / "run.1"
    assert prepare.make_folder(spec(f"{path}/"))
    assert path.stat().st_mode & 0o777 == 0o700
    assert not prepare.make_folder(spec(str(path))), "it is there"


@pytest.mark.parametrize("cwd", ["/proc/run.1", "/", "a\0b"])
def test_what_cannot_be_made_is_not_there(cwd: str) -> None:
    assert not prepare.make_folder(spec(cwd))


def test_a_folder_without_a_pattern_is_not_made(tmp_path: Path) -> None:
    assert not prepare.make_folder(spec(str(tmp_path / "run"), make=False))
    assert not (tmp_path / "run").exists()

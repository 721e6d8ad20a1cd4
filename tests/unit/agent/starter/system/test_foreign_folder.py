"""Whose folders a job's own may lie in: another user's that lies where anybody may put one is found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.starter.part import checkpoint_folder, user_files
from agent.starter.process import prepare
from agent.starter.process.spec import Spec, Template
from agent.starter.protocol.orders import Append
from agent.starter.protocol.part import CheckpointFolder, OutputFile, User
from agent.starter.system.foreign_folder import find_foreign
from agent.starter.system.stdio import Refused, open_output

OTHER = 65533
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give folders to another user")
ROOM = {"tmp": 0o1777, "open": 0o777, "group": 0o2770, "own": 0o755}
"""Folders, all of the job's user."""


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name, mode in ROOM.items():
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    return tmp_path


def put(path: Path, owner: int, mode: int = 0o777) -> Path:
    path.mkdir()
    path.chmod(mode)
    os.chown(path, owner, owner)
    return path


@pytest.mark.parametrize("room", ROOM)
@pytest.mark.parametrize("owner", [0, OTHER])
def test_it_is_another_users_where_anybody_may_put_one(folders: Path, room: str, owner: int) -> None:
    path = put(folders / room / "run.1", owner)
    assert find_foreign(str(path)) == (str(path) if owner and room in ("tmp", "open") else "")


@pytest.mark.parametrize(("mode", "found"), [(0o777, True), (0o1777, True), (0o2770, False), (0o755, False)])
def test_one_on_the_way_counts_where_everybody_may_write_to_it(folders: Path, mode: int, found: bool) -> None:
    above = put(folders / "tmp" / "alice", OTHER, mode)
    path = put(above / "run.1", 0, 0o700)
    assert find_foreign(str(path)) == (str(above) if found else "")


def test_links_are_followed_and_those_of_others_are_not_trusted(folders: Path) -> None:
    path = put(folders / "tmp" / "run.1", OTHER)
    link = folders / "own" / "link"
    link.symlink_to(path)
    assert find_foreign(str(link)) == str(path)
    theirs = folders / "tmp" / "link"
    theirs.symlink_to(folders / "own")
    os.lchown(theirs, OTHER, OTHER)
    assert find_foreign(str(theirs)) == str(theirs)


def test_a_job_does_not_run_in_it(folders: Path) -> None:
    path = put(folders / "tmp" / "run.1", OTHER)

    def entered(make: bool) -> str:
        return prepare.enter_folder(
            Spec(Template({"argv": ["x"], "title": "t", "make_cwd": make}), {"uid": "u", "cwd": str(path)})
        )

    before = os.getcwd()
    try:
        with pytest.raises(Refused) as refused:
            entered(True)
        assert (refused.value.code, refused.value.reason) == (
            "cwd",
            f"working folder {path}: {path} is another user's, in a folder where anybody may put one",
        )
        # one that the user has named
        assert entered(False) == str(path)
    finally:
        os.chdir(before)


@pytest.mark.parametrize("kind", ["folder", "part", "stage"])
def test_a_job_does_not_go_on_from_it(folders: Path, kind: str) -> None:
    path = put(folders / "tmp" / "7", OTHER)
    own = put(folders / "own" / "7", 0)
    wanted = {
        "folder": CheckpointFolder(str(path)),
        "part": CheckpointFolder(str(folders / "tmp"), part="7"),
        "stage": CheckpointFolder(str(own), stage=str(path)),
    }
    with pytest.raises(Refused, match=f"checkpoint folder {path}: {path} is another user's"):
        checkpoint_folder.prepare(wanted[kind], "h1")


def test_nothing_is_written_into_it(folders: Path) -> None:
    path = put(folders / "tmp" / "7_out", OTHER) / "o"
    why = f"{path}: {path.parent} is another user's, in a folder where anybody may put one"
    with pytest.raises(Refused, match=f"output file {why}"):
        open_output(OutputFile(str(path), mkdir=True))
    told = user_files.write(Append("u", User("root", 0, 0, ()), str(path), "report", 0o022, mkdir=True))
    assert told.error == why
    assert not path.exists()

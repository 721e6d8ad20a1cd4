"""The checkpoint folder is made and tried before the job starts; each thing that is wrong with it has its reason."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from agent.starter.part.checkpoint_folder import prepare
from agent.starter.protocol.part import CheckpointFolder
from agent.starter.system import mounts
from agent.starter.system.stdio import Refused


def refused(wanted: CheckpointFolder) -> tuple[str, str]:
    with pytest.raises(Refused) as caught:
        prepare(wanted, "h1")
    return caught.value.code, caught.value.reason


def test_it_is_made_and_left_empty(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "7"
    for _ in range(2):
        prepare(CheckpointFolder(str(path)), "h1")
    assert list(path.iterdir()) == []


def test_a_job_that_goes_on_from_another_gets_a_link(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    wanted = CheckpointFolder(str(tmp_path / "8"), of="7")
    for _ in range(2):
        prepare(wanted, "h1")
    assert os.readlink(tmp_path / "8") == "7"
    code, why = refused(CheckpointFolder(str(tmp_path / "9"), of="6"))
    assert (code, why) == ("checkpoint", f"checkpoint folder {tmp_path}/9: No such file or directory")


def test_a_file_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refused(CheckpointFolder(str(tmp_path / "file" / "7"))) == (
        "checkpoint",
        f"checkpoint folder {tmp_path}/file/7: Not a directory",
    )


@pytest.mark.parametrize("folder", ["/proc/lava", "/sys/lava"])
def test_where_nothing_can_be_made(folder: str) -> None:
    code, why = refused(CheckpointFolder(f"{folder}/7"))
    assert code == "checkpoint"
    assert why.startswith(f"checkpoint folder {folder}/7: ")


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        assert refused(CheckpointFolder(str(tmp_path))) == ("checkpoint", f"checkpoint folder {tmp_path}: File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_one_host_alone(tmp_path: Path) -> None:
    mount = mounts.mount_of(mounts.read(), str(tmp_path.resolve()))
    assert mount is not None
    if mount.shared:
        pytest.skip(f"{tmp_path} is on a network file system here")
    path = tmp_path / "ckpt" / "7"
    told = f"-k: {tmp_path}/ckpt is on a file system of h1 alone: a restart elsewhere would not find its checkpoints"
    assert refused(CheckpointFolder(str(path), moves=True)) == ("checkpoint", told)
    assert refused(CheckpointFolder(str(path), moves=True, shared=("/elsewhere", f"{tmp_path}x"))) == ("checkpoint", told)
    for shared in ("all", str(tmp_path), f"{tmp_path}/"):
        prepare(CheckpointFolder(str(path), moves=True, shared=("/elsewhere", shared)), "h1")


def test_a_link_to_a_folder_that_the_site_declares(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    prepare(CheckpointFolder(f"{tmp_path}/link/7", moves=True, shared=(f"{tmp_path}/real",)), "h1")


def test_the_folder_of_copies_is_below_one_that_is_there(tmp_path: Path) -> None:
    wanted = CheckpointFolder(str(tmp_path / "own" / "7"), stage=str(tmp_path / "all" / "me" / "7"))
    why = f"checkpoint folder {tmp_path}/all/me/7: No such file or directory"
    assert refused(wanted) == ("checkpoint", why), "a file system that is not mounted"
    (tmp_path / "all").mkdir()
    for _ in range(2):
        prepare(wanted, "h1")
    assert (tmp_path / "all" / "me").stat().st_mode & 0o777 == 0o700
    assert list((tmp_path / "all" / "me" / "7").iterdir()) == []
    prepare(CheckpointFolder(str(tmp_path / "there" / "8"), of="7", stage=str(tmp_path / "all" / "me" / "8")), "h2")
    assert os.readlink(tmp_path / "all" / "me" / "8") == "7"
    assert list((tmp_path / "there" / "8").iterdir()) == [], "another host has not seen job 7"


def test_the_copies_must_be_seen_and_the_folder_need_not(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    wanted = CheckpointFolder(str(tmp_path / "own" / "7"), moves=True, stage=str(tmp_path / "all" / "me" / "7"))
    prepare(wanted._replace(shared=(str(tmp_path / "all"),)), "h1")
    code, why = refused(wanted._replace(shared=(str(tmp_path / "own"),)))
    assert code == "checkpoint"
    assert why.startswith(f"-k: {tmp_path}/all/me is on a file system of h1 alone")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_a_folder_of_copies_that_another_user_made(tmp_path: Path) -> None:
    (tmp_path / "all" / "me").mkdir(parents=True)
    os.chown(tmp_path / "all" / "me", 65534, 65534)
    wanted = CheckpointFolder(str(tmp_path / "own" / "7"), stage=str(tmp_path / "all" / "me" / "7"))
    assert refused(wanted)[1] == f"checkpoint folder {tmp_path}/all/me/7: {tmp_path}/all/me is another user's"


def test_each_host_has_a_folder_for_its_part(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    stage = str(tmp_path / "all" / "me" / "7")
    for place in (0, 1):
        prepare(CheckpointFolder(str(tmp_path / "own" / "7"), stage=stage, part=f"part-{place}"), f"h{place}")
    assert sorted(os.listdir(tmp_path / "own" / "7")) == ["part-0", "part-1"]
    assert os.listdir(stage) == []
    on = CheckpointFolder(str(tmp_path / "own" / "8"), of="7", stage=str(tmp_path / "all" / "me" / "8"), part="part-2")
    prepare(on, "h2")
    assert sorted(os.listdir(tmp_path / "own" / "7")) == ["part-0", "part-1", "part-2"], "8 is a link to it"
    (tmp_path / "own" / "7" / "part-3").write_text("")
    assert refused(on._replace(part="part-3"))[1].startswith(f"checkpoint folder {tmp_path}/own/8/part-3: ")

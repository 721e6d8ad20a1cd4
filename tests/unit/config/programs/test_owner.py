"""Programs that a daemon of root runs: nobody else may write them, or put others in their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from config.programs.owner import only_root_writes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
OTHER = 65534


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """``site/etc/elim``, all of it root's."""
    folder = tmp_path / "site" / "etc"
    folder.mkdir(mode=0o755, parents=True)
    found = folder / "elim"
    found.write_text("#!/bin/sh\n")
    found.chmod(0o755)
    assert only_root_writes(str(found))
    return found


def test_one_whom_a_folder_above_belongs_to_could_put_another_there(program: Path) -> None:
    site = program.parents[1]
    os.chown(site, OTHER, OTHER)
    assert not only_root_writes(str(program))
    assert not only_root_writes(str(program.parent))
    os.chown(site, 0, 0)
    for mode, is_safe in ((0o775, False), (0o757, False), (0o1777, True), (0o755, True)):
        site.chmod(mode)
        assert only_root_writes(str(program)) is is_safe, oct(mode)


def test_a_link_is_as_safe_as_what_it_leads_to(program: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, OTHER, OTHER)
    (theirs / "elim").write_bytes(b"")
    links = tmp_path / "links"
    links.mkdir()
    for name, target in (
        ("good", "../site/etc/elim"),
        ("folder", str(program.parent)),
        ("bad", str(theirs / "elim")),
        ("round", "round"),
    ):
        (links / name).symlink_to(target)
    (links / "given").symlink_to(program)
    os.lchown(links / "given", OTHER, OTHER)
    found = {name: only_root_writes(f"{links}/{name}") for name in ("good", "folder/elim", "bad", "round", "given", "none")}
    assert found == {"good": True, "folder/elim": True, "bad": False, "round": False, "given": False, "none": False}


def test_a_folder_above_is_that_of_what_a_link_leads_to(program: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (theirs / "there").mkdir(parents=True)
    os.chown(theirs, OTHER, OTHER)
    (theirs / "elim").write_bytes(b"")
    (program.parent / "link").symlink_to(theirs / "there")
    assert not only_root_writes(f"{program.parent}/link/../elim")
    assert only_root_writes(f"{program.parent}/../etc/elim")


def test_what_is_not_roots_is_not_safe_itself(program: Path) -> None:
    program.chmod(0o1777)
    assert not only_root_writes(str(program))
    program.chmod(0o755)
    os.chown(program, OTHER, OTHER)
    assert not only_root_writes(str(program))

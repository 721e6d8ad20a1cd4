"""``lava up``: a site's folder with what it includes, a cluster that was made before, and one that cannot be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.client.context import Fail
from cli.lava import is_of_a_site, main
from cli.local.folder import CannotUp, Folder, Shape
from cli.local.up import Wanted, copy_conf, up, without_effect
from cli.web import address_of, find_cluster
from config import lsfconf
from config.read.load import load
from proto.version import PRODUCT


@pytest.mark.parametrize("named", [False, True])
def test_the_files_of_lsfs_own_places_are_taken(named: bool, tmp_path: Path) -> None:
    site = tmp_path / "site"
    own = (tmp_path / "batch" if named else site / "lsbatch") / "lab" / "configdir"
    own.mkdir(parents=True)
    (site / "shared").mkdir(parents=True)
    (site / "shared" / "limits").write_text("UJOB_LIMIT = 5\n")
    (site / "lsf.conf").write_text(f"LSB_CONFDIR={tmp_path}/batch\n" if named else "")
    (site / "lsf.cluster.lab").write_text("Begin Host\nHOSTNAME\nh1\nEnd Host\n")
    (own / "lsb.queues").write_text('Begin Queue\nQUEUE_NAME = own\n#INCLUDE "shared/limits"\nEnd Queue\n')
    folder = Folder(tmp_path / "cluster")
    folder.conf.mkdir(parents=True)
    copy_conf(site, folder)
    (folder.conf / "lsf.conf").write_text("")
    loaded = load(str(folder.conf))
    assert loaded.problems == ()
    assert [(queue.name, queue.ujob_limit) for queue in loaded.config.queues] == [("own", 5)]


def test_a_cluster_of_the_first_version_is_known_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.find_shape() is None
    folder.shape_file.write_text('{"hosts": ["host1"], "slots": 2, "ports": [4001, 4002], "database": "postgres", "gpus": 0}')
    shape = folder.find_shape()
    assert shape == Shape(["host1"], 2, 2, "postgres", 0)
    folder.keep_shape(shape)
    assert folder.find_shape() == shape
    assert folder.master_names(shape.masters) == ["lavad", "lavad-2"]


def test_what_a_cluster_is_not_is_told() -> None:
    """Options that were not given, and those that say what it is, are no news."""
    shape = Shape(["host1", "host2"], 4, 1, "sqlite", 2)
    assert without_effect(shape, Wanted()) == []
    assert without_effect(shape, Wanted(hosts=2, slots=4, database="sqlite", masters=1, gpus=2, web=0)) == []
    told = without_effect(shape, Wanted(hosts=3, slots=8, database="postgres", masters=2, gpus=0))
    assert [line.partition(" (")[0] for line in told] == [
        "--hosts 3 changes nothing: this cluster was made with 2",
        "--slots 8 changes nothing: this cluster was made with 4",
        "--masters 2 changes nothing: this cluster was made with 1",
        "--gpus 0 changes nothing: this cluster was made with 2",
        "--database changes nothing: this cluster keeps the one that it was made with",
    ]


def test_a_cluster_that_could_not_be_made_leaves_nothing_for_the_next_try(tmp_path: Path) -> None:
    """What somebody had put into its configuration stays."""
    folder, site = Folder(tmp_path / "cluster"), tmp_path / "site"
    folder.make()
    (folder.conf / "lsf.task").write_text("own\n")
    (site / "shared").mkdir(parents=True)
    (site / "lsb.queues").write_text("Begin Queue\nPRIORITY = x\nEnd Queue\n")
    for _ in range(2):
        with pytest.raises(CannotUp, match=r"lsb\.queues:"):
            up(folder, Wanted(confdir=str(site)))
        assert [path.name for path in folder.conf.rglob("*")] == ["lsf.task"]
        assert folder.find_shape() is None


def test_a_configuration_that_is_not_there_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(CannotUp, match=r"--conf /nosuch: not a folder"):
        up(Folder(tmp_path / "cluster"), Wanted(confdir="/nosuch"))
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_configuration_is_told_with_its_line_where_it_has_one(tmp_path: Path) -> None:
    folder, site = Folder(tmp_path / "cluster"), tmp_path / "site"
    folder.make()
    site.mkdir()
    (site / "lsf.conf").write_text("\nLAVA_FENCE=off\n")
    with pytest.raises(CannotUp, match=r"/lsf\.conf:2: LAVA_FENCE off"):
        up(folder, Wanted(confdir=str(site)))
    (folder.conf / "lsb.users").mkdir()
    with pytest.raises(CannotUp, match=r"/lsb\.users: cannot be read"):
        up(folder, Wanted())


@pytest.mark.parametrize("word", ["-V", "--version"])
def test_the_version_is_shown_as_by_all_commands(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    assert capsys.readouterr() == (PRODUCT + "\n", "")


def test_a_folder_that_cannot_be_made_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "x"
    assert main(["up", "--dir", str(folder)]) == 1
    assert capsys.readouterr() == ("false\n", f"lava up: {folder}: Not a directory\n")
    assert main(["down", "--dir", str(folder)]) == 0
    assert capsys.readouterr().err == f"lava down: {folder}: no cluster was made here\n"


def test_status_without_a_cluster_of_lava_up_is_that_of_the_machines_site(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whether LSF_ENVDIR names its files or they lie where all commands look without it."""
    monkeypatch.delenv("LSF_ENVDIR", raising=False)
    monkeypatch.setenv("LAVA_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(lsfconf, "SITE_ENVDIR", str(tmp_path / "nosuch"))
    assert main(["status"]) == 1
    assert capsys.readouterr().err == f"lava status: {tmp_path / 'none'}: no cluster was made here (lava up makes one)\n"
    monkeypatch.setattr(lsfconf, "SITE_ENVDIR", str(tmp_path))
    assert is_of_a_site(Folder(tmp_path / "none"))
    assert main(["status", "--dir", str(tmp_path / "none")]) == 1


def test_the_page_of_a_shell_of_lava_up_is_that_clusters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """So that what starts it can be named where it does not run."""
    folder = Folder(tmp_path)
    folder.make()
    monkeypatch.setenv("LAVA_DIR", str(tmp_path))
    for named, found in ((str(folder.conf), True), ("", True), ("/etc/other", False)):
        monkeypatch.setenv("LSF_ENVDIR", named)
        assert (find_cluster("")[1] is not None) is found
    with pytest.raises(Fail, match=f"no page runs: lava up --dir {tmp_path} --web"):
        address_of({}, folder)

"""``lava up --conf``: a site's folder, its lsb.* files where LSF has them, and what they include."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.local.folder import Folder, Shape
from cli.local.up import copy_conf
from config.read.load import load


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

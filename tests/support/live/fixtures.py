"""The cluster of a test: ``cluster`` for all tests of a module, ``own_cluster`` for one test that kills its hosts.

Its shape stands at the top of the module, or above the test: ``pytestmark = pytest.mark.cluster(hosts=2, slots=4)``; without
the mark it is one host with four slots. What more a module needs (jobs that have ended, a mailer) is a fixture of its own.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.netns import NetnsCluster, why_not


@dataclass(frozen=True)
class Shape:
    """What ``pytest.mark.cluster`` may say."""

    hosts: int = 1
    slots: int = 4
    options: tuple[str, ...] = ()
    """More words for ``lava up``."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables that ``lava up`` and its daemons see."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Files of the site's folder that ``lava up --conf`` is given: @FOLDER@ in them is the folder above the cluster's, @PORT@ a
    free port."""
    added: Mapping[str, str] = field(default_factory=dict)
    """Text behind files that ``lava up`` has written; ``badmin reconfig`` makes it known."""
    apart: Literal["no", "if possible", "yes"] = "no"
    """Hosts in networks of their own; the tests are skipped where "yes" is not possible."""
    reached_by_all: bool = False
    """Every user may write in the folder that the cluster's is in."""


@contextmanager
def running(shape: Shape, folder: Path) -> Iterator[Cluster]:
    """A cluster of this shape in ``folder``/cluster."""
    folder.chmod(0o1777 if shape.reached_by_all else 0o755)
    options = shape.options
    if shape.conf:
        (folder / "conf").mkdir()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        for name, text in shape.conf.items():
            (folder / "conf" / name).write_text(text.replace("@FOLDER@", str(folder)).replace("@PORT@", str(port)))
        options += ("--conf", str(folder / "conf"))
    if shape.apart != "no" and not why_not():
        made: Cluster = NetnsCluster(folder / "cluster", shape.hosts, shape.slots)
    else:
        made = Cluster(folder / "cluster", shape.hosts, shape.slots, options, shape.environ)
    with made:
        for name, text in shape.added.items():
            with (made.folder.conf / name).open("a") as file:
                file.write(text)
        if shape.added:
            made.run("badmin reconfig -f")
        yield made


def _shape_of(request: pytest.FixtureRequest) -> Shape:
    mark = request.node.get_closest_marker("cluster")
    shape = Shape(**mark.kwargs) if mark else Shape()
    if shape.apart == "yes" and (why := why_not()):
        pytest.skip(why)
    return shape


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for the tests of a module."""
    with running(_shape_of(request), tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def own_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of one test."""
    with running(_shape_of(request), tmp_path) as made:
        yield made

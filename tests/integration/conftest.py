"""Fixtures that several integration tests share: a starter, and an agent with its master, each of one test alone; a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemons.agent_host import AgentHost, fake_master, running
from tests.support.daemons.fake_master import FakeMaster
from tests.support.daemons.gangs import two
from tests.support.daemons.starters import rig
from tests.support.live.fixtures import cluster, own_cluster

__all__ = ["cluster", "host", "master", "own_cluster", "rig", "two"]


@pytest.fixture
def master() -> Iterator[FakeMaster]:
    with fake_master() as one:
        yield one


@pytest.fixture
def host(tmp_path: Path, master: FakeMaster) -> Iterator[AgentHost]:
    with running(AgentHost(tmp_path, master.address), lambda: master.hellos) as one:
        yield one

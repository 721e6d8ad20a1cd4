"""Real agent and starter, with LSB_DISABLE_RERUN_POST_EXEC: what runs after an attempt, by what becomes of its job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, run
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until


@pytest.fixture
def host(tmp_path: Path, master: FakeMaster) -> Iterator[AgentHost]:
    one = AgentHost(tmp_path, master.address, conf="LSB_DISABLE_RERUN_POST_EXEC=Y\n")
    one.start()
    try:
        wait_until(lambda: master.hellos, 30, "the agent")
        yield one
    finally:
        one.stop()


@pytest.mark.parametrize(
    ("kind", "leased", "found"), [("requeue", True, "host"), ("requeue", False, "own host"), ("kill", True, "own host")]
)
def test_a_rerunnable_job_that_runs_again_keeps_what_its_own_commands_would_remove(
    master: FakeMaster, host: AgentHost, kind: str, leased: bool, found: str
) -> None:
    said = host.folder / "said"
    after: dict[str, Any] = {"post_exec": f"echo own >> {said}", "host_post_exec": [f"echo host >> {said}"]}
    order = run(master, host, "sleep 600", leased=leased, **after)
    master.wait_for(order.uid, "started")
    asked = pb.Signal(number=1, kind=kind, reason="TERM_REQUEUE_OWNER")
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, signal=asked))
    master.wait_for(order.uid, "gone")
    assert said.read_text().split() == found.split()

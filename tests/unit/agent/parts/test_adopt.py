"""What an agent finds again after its restart is the very list that it forgets from."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.part import Part, Rules
from agent.launch import outputs
from agent.launch.accounts import Accounts
from agent.launch.site import Site
from agent.parts.entry import Entry
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter.process import account
from agent.starter.protocol.reports import Ended, Gone, Hello, Lost, PartState, PartStatus
from agent.starter.protocol.version import PROTOCOL
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb


def test_a_part_that_was_taken_over_is_forgotten_when_its_end_is_known(tmp_path: Path) -> None:
    """Taken over, told gone, acknowledged: nothing of it is kept."""
    site = Site("h1", str(tmp_path), str(tmp_path), str(tmp_path), {})
    runner = Runner(site, Spool(str(tmp_path / "spool")), HostMonitor("127.0.0.1", 1), Accounts(), Outgoing())
    part = Part(uid="u", key=7, attempt=1)
    entry = Entry(part, pb.Order(key=7, attempt=1, uid="u"), None, outputs.OutputPaths(), 1.0)
    runner.table.adopt([entry])
    runner.parts.reported([Lost("u", "its shepherd died")])
    assert entry.reported
    assert "u" in runner.table
    runner.parts.acked(["u"])
    assert not list(runner.table)


def test_a_part_that_ran_out_of_memory_while_the_agent_was_away_ended_for_its_limit(tmp_path: Path) -> None:
    """Its last sample was far below."""
    site = Site("h1", str(tmp_path), str(tmp_path), str(tmp_path), {})
    runner = Runner(site, Spool(str(tmp_path / "spool")), HostMonitor("127.0.0.1", 1), Accounts(), Outgoing())
    part = Part(uid="u", key=7, attempt=1, rules=Rules(mem=1 << 20, enforce_memory=True))
    runner.table.adopt([Entry(part, pb.Order(key=7, attempt=1, uid="u"), None, outputs.OutputPaths(), 1.0)])
    end = account.end_of([account.Task(-1, 77)], 9, 1.0, False, account.Used())
    status = PartStatus("u", 7, 1, PartState.GONE, 77, 1, end, oom=True)
    runner.parts.starter_connected(Hello("boot", 1, 1, (status,), PROTOCOL), set())
    [told] = [report for report in runner.outbox.take() if report.HasField("ended")]
    assert told.ended.limit == "TERM_MEMLIMIT"


@pytest.mark.parametrize("first", ["gone", "acknowledged"])
def test_an_end_is_kept_until_the_master_has_it_and_nothing_is_left(tmp_path: Path, first: str) -> None:
    """An agent that starts again in between tells it again; one that forgot it would have to say that the job was lost."""
    site = Site("h1", str(tmp_path), str(tmp_path), str(tmp_path), {})
    runner = Runner(site, Spool(str(tmp_path / "spool")), HostMonitor("127.0.0.1", 1), Accounts(), Outgoing())
    runner.table.adopt(
        [Entry(Part(uid="u", key=7, attempt=1), pb.Order(key=7, attempt=1, uid="u"), None, outputs.OutputPaths(), 1.0)]
    )
    end = account.end_of([account.Task(-1, 77)], 3 << 8, 1.0, False, account.Used())
    runner.parts.reported([Ended("u", end)])
    [told] = [report for report in runner.outbox.take() if report.HasField("ended")]
    assert told.ended.status == 3 << 8
    steps = [lambda: runner.parts.reported([Gone("u")]), lambda: runner.parts.acked(["u"])]
    for step in steps if first == "gone" else reversed(steps):
        assert "u" in runner.table
        step()
    assert not list(runner.table)

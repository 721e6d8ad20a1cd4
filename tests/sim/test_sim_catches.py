"""Each thing that a simulation watches for is shown to be caught: one rule of a host or of a master is broken at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.control.hosts import leased_parts
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.lang.states import HostState
from lavad.core.plan.plan import Plan
from lavad.hosts.leases import Findings, Leases
from tests.sim.agents import Host
from tests.sim.master import Master
from tests.sim.must_break import must_break
from tests.sim.simulation import FAULTS, Simulation


class IgnoresLease(Host):
    keeps_lease = False


class StartsAtPrepare(Host):
    waits_for_go = False


class IgnoresKills(Host):
    obeys_kill = False


class Lies(Host):
    tells_truth = False


class CommitsNothing(Master):
    remembers = False


class NoWait(Leases):
    """Leases that are over as soon as a host is silent."""

    def look(self, cluster: Cluster, now: float) -> Findings:
        silent = [name for name, host in cluster.hosts.rows.items() if host.state is not HostState.OK]
        found = super().look(cluster, now)
        return Findings(found.silent, [(name, [key for key, _, _ in leased_parts(cluster, name)]) for name in silent])


class RunsChunksAtOnce(Host):
    keeps_chunks = False


class FencesAtOnce(Master):
    leases_of = NoWait


class AnswersAnew(Master):
    answers_once = False


class PutsAllOnOneHost(Master):
    def accept(self, cluster: Cluster, plan: Plan, now: float, seed: str) -> list[ev.Event]:
        events = accept_plan(cluster, plan, now, seed)
        moved: list[ev.Event] = []
        for event in events:
            assert isinstance(event, ev.JobDispatched)
            moved.append(replace(event, parts=(replace(event.parts[0], host="h0"),)))
        return moved


BROKEN_HOSTS = [
    (IgnoresLease, "at the same time", ("net",)),
    (StartsAtPrepare, "may run once only|at the same time|is said to be lost", FAULTS),
    (IgnoresKills, "still|at the same time|slots and", FAULTS),
    (Lies, "its process ends with|may run once", FAULTS),
]
BROKEN_MASTERS = [
    (CommitsNothing, "was acknowledged and is lost|given out twice|than its submission", FAULTS),
    (FencesAtOnce, "at the same time", ("net",)),
    (AnswersAnew, r"submissions made \d+ jobs", FAULTS),
    (PutsAllOnOneHost, r"slots and \d+ are in use", FAULTS),
]
SHOWS_AT: dict[type[Host], int] = {StartsAtPrepare: 8, IgnoresKills: 26}
"""A seed shortly before one that has shown it, for what few of them show."""


def found(text: str, faults: Sequence[str], begin: int = 0, **broken: Any) -> None:
    must_break(text, lambda seed: Simulation(seed, faults=faults, pause=20.0, **broken), begin)


@pytest.mark.parametrize(("host", "text", "faults"), BROKEN_HOSTS, ids=[row[0].__name__ for row in BROKEN_HOSTS])
def test_a_host_that_breaks_a_rule_is_found(host: type[Host], text: str, faults: Sequence[str]) -> None:
    found(text, faults, SHOWS_AT.get(host, 0), host=host)


def test_a_host_that_runs_all_of_a_chunk_at_once_is_found() -> None:
    found(r"slots and runs \d+", FAULTS, host=RunsChunksAtOnce, chunk=4, elastic=0.0)


@pytest.mark.parametrize(("master", "text", "faults"), BROKEN_MASTERS, ids=[row[0].__name__ for row in BROKEN_MASTERS])
def test_a_master_that_breaks_a_rule_is_found(master: type[Master], text: str, faults: Sequence[str]) -> None:
    found(text, faults, master=master)

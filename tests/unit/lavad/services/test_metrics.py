"""The numbers for a Prometheus: counted from committed events, shown by a page that never touches the engine's thread."""

from __future__ import annotations

import http.client
import socket

import pytest
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from lavad.core import events as ev
from lavad.core.job.job import Job, Suspect
from lavad.core.lang.states import HangState
from lavad.core.plan.plan import Plan
from lavad.engine import Committed
from lavad.services.metrics import Metrics, Server, _Page, is_loopback, split_address
from tests.support.worlds.world import World


def shown(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Sample name and label values to value."""
    registry = CollectorRegistry()
    registry.register(_Page(metrics))
    text = generate_latest(registry).decode()
    families = text_string_to_metric_families(text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


class Recording(World):
    """Keeps the events, and the last record of each job that ended."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.finished: dict[int, Job] = {}
        super().__init__()

    def apply(self, *events: ev.Event) -> None:
        for event in events:
            if isinstance(event, ev.JobFinished):
                self.finished[event.key] = replace(self.cluster.jobs.rows[event.key], state=event.state)
            super().apply(event)
            self.events.append(event)


class Bench:
    def __init__(self) -> None:
        self.world = Recording()
        self.world.hosts("h1", "h2", slots=4)
        self.metrics = Metrics(self.world.cluster)
        self.seen = len(self.world.events)

    def tell(self) -> dict[tuple[str, ...], float]:
        """What happened since, as one batch; then the page."""
        world = self.world
        events, self.seen = world.events[self.seen :], len(world.events)
        finished = [world.finished[event.key] for event in events if isinstance(event, ev.JobFinished)]
        self.metrics.committed(Committed(world.cluster.version, events, (), finished))
        return shown(self.metrics)


def test_jobs_are_counted_by_kind_and_queue() -> None:
    """Created, succeeded, failed, restarted; ranks of those that run; waits."""
    bench = Bench()
    world = bench.world
    good, bad = world.submit(), world.submit()
    gang = world.submit(slots=4, launch="mpi")
    world.step()
    seen = bench.tell()
    assert seen["lava_jobs_submitted_total", "serial", "normal"] == 2
    assert seen["lava_jobs_submitted_total", "mpi", "normal"] == 1
    assert seen["lava_jobs_dispatched_total", "mpi", "normal"] == 1
    assert seen["lava_job_ranks", str(gang), "mpi", "normal"] == 4
    assert seen["lava_job_wait_seconds_count", "serial", "normal"] == 2
    world.finish(good)
    world.finish(bad, 1)
    world.apply(ev.RanksSuspected(at=world.now, key=gang, attempt=1, suspects=(Suspect(1, "h1", 7, HangState.IDLE),)))
    world.finish(gang)
    seen = bench.tell()
    assert seen["lava_jobs_ended_total", "serial", "normal", "DONE"] == 1
    assert seen["lava_jobs_ended_total", "serial", "normal", "EXIT"] == 1
    assert seen["lava_hangs_total", "mpi", "normal"] == 1
    assert ("lava_job_ranks", str(gang), "mpi", "normal") not in seen
    assert seen["lava_commits_total",] == 2


def test_cycles_and_gauges() -> None:
    bench = Bench()
    bench.metrics.planned(Plan(version=1, took=0.02))
    bench.metrics.planned(Plan(version=2))
    seen = shown(bench.metrics)
    assert (seen["lava_cycle_seconds_count",], seen["lava_cycle_seconds_bucket", "0.03"]) == (1, 1)
    assert seen["lava_hosts", "ok"] == 2


def test_the_page_is_served_and_closed() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    page = Server(Bench().metrics, str(port), "")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert (answer.status, b"lava_commits_total" in answer.read()) == (200, True)
    connection.close()
    page.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_port_that_is_taken_is_no_end(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        Server(Bench().metrics, f"127.0.0.1:{taken.getsockname()[1]}", "").close()
    assert "Address already in use" in caplog.text


def test_addresses() -> None:
    assert split_address("9109") == ("127.0.0.1", 9109)
    assert split_address("[::1]:9") == ("::1", 9)
    assert [is_loopback(host) for host in ("127.0.0.2", "localhost", "0.0.0.0", "10.0.0.1")] == [True, True, False, False]
    with pytest.raises(ValueError):
        split_address("here")

"""The numbers for a Prometheus: counted from committed events, shown by a page that never touches the engine's thread."""

from __future__ import annotations

import http.client
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cli.local import certs
from lavad.committed import Committed
from lavad.core import events as ev
from lavad.core.job.job import Array, Job, Placed, Suspect
from lavad.core.job.spec import Policy, Role
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import HangState, JobState
from lavad.core.plan.plan import Plan
from lavad.services.metrics import Metrics, Server, _Page
from proto.listen_address import is_loopback, split_address
from tests.support.worlds.world import World


def shown(metrics: Metrics) -> dict[tuple[str, ...], float]:
    """Sample name and label values to value."""
    registry = CollectorRegistry()
    registry.register(_Page(metrics))
    text = generate_latest(registry).decode()
    families = text_string_to_metric_families(text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


class Recording(World):
    """Keeps the events, and the last record of each job and array that ended."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.finished: dict[int, Job] = {}
        self.arrays: dict[int, Array] = {}
        super().__init__()

    def apply(self, *events: ev.Event) -> None:
        for event in events:
            if isinstance(event, ev.JobFinished):
                self.finished[event.key] = replace(self.cluster.jobs.rows[event.key], state=event.state)
            before = dict(self.cluster.arrays.rows)
            super().apply(event)
            self.arrays |= {key: before[key] for key in before.keys() - self.cluster.arrays.rows.keys()}
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
        arrays = [array for key, array in world.arrays.items() if any(getattr(event, "key", 0) == key for event in events)]
        self.metrics.committed(Committed(world.cluster.version, events, (), finished, arrays, took=0.002))
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
    assert (seen["lava_commits_total",], seen["lava_commit_seconds_bucket", "0.003"]) == (2, 2)


def test_elements_killed_together_count_for_their_queue() -> None:
    """Also where nothing of the array is left behind them."""
    bench = Bench()
    world = bench.world
    key = world.submit(array="1-5")
    for some in ("1-2", "3-5"):
        world.apply(ev.ElementsKilled(at=world.now, key=key, elements=Ranges.parse(some), state=JobState.EXIT))
    assert bench.tell()["lava_jobs_ended_total", "serial", "normal", "EXIT"] == 5


def test_slots_of_a_job_that_is_resized_are_those_that_it_has() -> None:
    bench = Bench()
    world = bench.world
    key = world.submit(resizable=True)
    world.step()
    name = ("lava_job_ranks", str(key), "serial", "normal")
    assert name not in bench.tell()
    run = world.cluster.jobs.rows[key].run
    assert run is not None
    (other,) = {"h1", "h2"} - {run.parts[0].host}
    world.apply(ev.JobGrew(at=world.now, key=key, attempt=1, number=1, parts=(Placed(other, 3),)))
    assert bench.tell()[name] == 4
    world.apply(ev.JobResized(at=world.now, key=key, attempt=1, number=1))
    world.apply(ev.JobShrank(at=world.now, key=key, attempt=1, number=2, parts=(Placed(other, 1),), forced=True))
    assert bench.tell()[name] == 3
    world.apply(ev.PartLeft(at=world.now, key=key, attempt=1, host=other))
    assert name not in bench.tell()


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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
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


def test_certificates_that_are_half_replaced_are_no_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    certs.make(tmp_path, "one", ["0.0.0.0"], [])
    page = Server(Bench().metrics, "0.0.0.0:0", str(tmp_path))
    key = tmp_path / "master.key"
    former = key.read_bytes()
    key.write_bytes(b"")
    page.reload()
    assert "are not taken up" in caplog.text
    key.write_bytes(former)
    caplog.clear()
    page.reload()
    page.close()
    assert not caplog.messages


def test_addresses() -> None:
    assert split_address("9109") == ("127.0.0.1", 9109)
    assert split_address("[::1]:9") == ("::1", 9)
    assert [is_loopback(host) for host in ("127.0.0.2", "localhost", "0.0.0.0", "10.0.0.1")] == [True, True, False, False]
    with pytest.raises(ValueError):
        split_address("here")


def test_jobs_with_roles_are_told_apart_and_their_restarts_counted() -> None:
    bench = Bench()
    world = bench.world
    roles = tuple(Role(name=name, count=1) for name in ("master", "worker"))
    kinds = ("pytorch", "tensorflow", "mpi", "volcano")
    words = {"volcano": "volcano(pytorch,master=master)"}
    fields: dict[str, Any] = {"slots": 2, "max_slots": 2, "roles": roles, "launch": "roles"}
    keys = [world.submit(**fields, policy=Policy(framework=words.get(kind, kind))) for kind in kinds]
    world.step()
    first = keys[0]
    world.apply(ev.TaskRetried(at=world.now, key=first, attempt=1, rank=1, number=2, why="exit 137"))
    world.apply(ev.CheckpointMade(at=world.now, key=first, attempt=1, generation=1, seconds=2.0, size=10))
    world.apply(ev.CheckpointFailed(at=world.now, key=first, attempt=1, generation=2, why="disk full"))
    world.submit(**fields)
    seen = bench.tell()
    assert [seen["lava_jobs_submitted_total", name, "normal"] for name in (*kinds, "roles")] == [1, 1, 1, 1, 1]
    assert seen["lava_tasks_restarted_total", "pytorch", "normal"] == 1
    assert seen["lava_checkpoints_total", "pytorch", "normal", "made"] == 1
    assert seen["lava_checkpoints_total", "pytorch", "normal", "failed"] == 1


MONITORING = Path(__file__).parents[4] / "docs" / "monitoring"


def test_the_dashboard_and_the_alerts_ask_for_what_there_is() -> None:
    registry = CollectorRegistry()
    registry.register(_Page(Bench().metrics))
    there = {f"{family.name}{end}" for family in registry.collect() for end in ENDS[family.type]}
    rules = [rule for group in yaml.safe_load((MONITORING / "lava.rules.yml").read_text())["groups"] for rule in group["rules"]]
    there |= {rule["record"] for rule in rules if "record" in rule}
    panels = json.loads((MONITORING / "grafana-lava.json").read_text())["panels"]
    asked = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
    named = {name for text in asked for name in re.findall(r"\blava[\w:]+", text)}
    assert named - there == set()
    assert {name.partition("_bucket")[0] for name in named} > {"lava_hosts", "lava_slots", "lava_job_wait_seconds"}


ENDS = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
"""Type of a metric to the ends of its names on the page."""

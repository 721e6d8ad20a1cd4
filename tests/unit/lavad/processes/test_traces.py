"""The life of jobs as spans: what the process reads of a store, sent by the SDK of OpenTelemetry to a collector on a port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.job.depend import MET
from lavad.core.job.job import End, Placed
from lavad.core.lang.states import JobState, TermReason
from lavad.core.plan.volatile import WhyClass
from lavad.core.site.pend_reason import PendReason
from lavad.processes.otlp import ENDPOINT, Exporter
from lavad.processes.traces import Reasons, Traces
from lavad.store.read import Reader
from tests.support.live.collector import Collector, values
from tests.support.worlds.query_cluster import QueryCluster, at, element
from tests.support.worlds.query_store import stored


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    monkeypatch.setenv(ENDPOINT, "")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    with Collector() as found:
        yield found


def sent(folder: Path, collector: Collector, *why: dict[int, WhyClass]) -> None:
    """What a process that begins now sends of the store; ``why``: what it has been told one after the other."""
    reader = Reader.open(f"sqlite:///{folder}/lava.db")
    exporter = Exporter(collector.address)
    reasons = Reasons()
    for news in why:
        reasons.learn(news, 0.0)
    traces = Traces(reader, exporter, "lava", reasons)
    assert not traces.advance()
    assert exporter.send()
    reader.close()


def told(c: QueryCluster, folder: Path, collector: Collector, *why: WhyClass) -> dict[str, list[Any]]:
    """The spans of all jobs that have ended, by the id of their job, in order."""
    with stored(c, folder):
        sent(folder, collector, *(dict.fromkeys(c.specs.values(), one) for one in why))
    found: dict[str, list[Any]] = {}
    ids = {span.trace_id: values(span)["lava.job_id"] for span in collector.spans if not span.parent_span_id}
    for span in collector.spans:
        found.setdefault(ids[span.trace_id], []).append(span)
    return found


def seconds(span: Any) -> tuple[float, float]:
    """Begin and end, in seconds after the submission."""
    begin, end = (round(when / 1e9 - at("11:33:50"), 3) for when in (span.start_time_unix_nano, span.end_time_unix_nano))
    return begin, end


def notes(span: Any) -> list[str]:
    return [" ".join([event.name, *(one.value.string_value for one in event.attributes)]) for event in span.events]


def test_each_part_of_a_life_is_a_span(tmp_path: Path, collector: Collector) -> None:
    c = QueryCluster()
    c.submit(1, name="two", slots=2, max_slots=2)
    c.feed(ev.JobHeld(at=at("11:34:00"), key=1, by="alice"), ev.JobReleased(at=at("11:35:00"), key=1, by="alice"))
    c.start(1, "11:36:00", hosts="ol1 ol2")
    c.feed(
        ev.CheckpointMade(at=at("11:36:30"), key=1, attempt=1, generation=4, seconds=10.0, size=7),
        ev.JobSuspended(at=at("11:36:40"), key=1, state=JobState.USUSP, by="bob"),
        ev.JobResumed(at=at("11:36:50"), key=1, by="bob"),
        ev.PartEnded(at=at("11:37:00"), key=1, attempt=1, host="ol2", end=End(status=256)),
        ev.PartEnded(at=at("11:37:01"), key=1, attempt=1, host="ol1", end=End(status=9)),
        ev.JobFinished(at=at("11:37:05"), key=1, state=JobState.EXIT, status=256),
    )
    why = WhyClass(reasons=((int(PendReason.HOST_JOB_LIMIT), 1, ("ol1",)),), at=at("11:35:30"))
    spans = told(c, tmp_path, collector, why)["1"]
    assert [(span.name, *seconds(span)) for span in spans] == [
        ("job", 0.0, 195.0),
        ("submit", 0.0, 0.0),
        ("wait", 0.0, 130.0),
        ("dispatch", 130.0, 130.0),
        ("start", 130.0, 130.0),
        ("run", 130.0, 191.0),
        ("part", 130.0, 191.0),
        ("part", 130.0, 190.0),
        ("checkpoint", 150.0, 160.0),
        ("end", 191.0, 195.0),
    ]
    root, run = spans[0], spans[5]
    assert [span.parent_span_id for span in spans] == [b"", *[root.span_id] * 5, *[run.span_id] * 3, root.span_id]
    assert notes(spans[2]) == ["held alice", "released alice", "reason Job slot limit reached"]
    assert notes(run) == ["suspended bob", "resumed bob"]
    assert [span.status.message for span in spans] == ["exit code 1", "", "", "", "", "exit code 1", "", "exit code 1", "", ""]
    assert values(root) | {"lava.user": "alice", "lava.state": "EXIT", "lava.exit_code": 1, "lava.slots": 2} == values(root)
    assert values(spans[8])["lava.generation"] == 4
    assert collector.resources[0]["service.name"] == "lava"


def test_a_job_has_not_waited_for_what_held_up_others_before_it(tmp_path: Path, collector: Collector) -> None:
    c = QueryCluster()
    for job, clock in ((1, "11:34:30"), (2, "11:36:00")):
        c.submit(job, "11:33:50" if job == 1 else "11:35:00")
        c.start(job, clock)
        c.finish(job, "11:37:00")
    full = ((int(PendReason.HOST_JOB_LIMIT), 1, ("ol1",)),)
    news = [WhyClass(full, at("11:34:00")), WhyClass((), at("11:34:30")), WhyClass(full, at("11:35:30"))]
    found = told(c, tmp_path, collector, *news[:2])
    assert [notes(found[job][2]) for job in ("1", "2")] == [["reason Job slot limit reached"], []]
    collector.spans.clear()
    (tmp_path / "again").mkdir()
    again = told(c, tmp_path / "again", collector, *news)
    assert [[event.time_unix_nano / 1e9 - at("11:33:50") for event in again[job][2].events] for job in ("1", "2")] == [
        [10],
        [100],
    ]


def test_attempts_follow_each_other_and_jobs_that_never_ran_are_told_of(tmp_path: Path, collector: Collector) -> None:
    c = QueryCluster()
    c.submit(1, name="again")
    c.start(1, "11:34:00")
    c.feed(ev.JobRequeued(at=at("11:34:20"), key=1, why="host ol2 was lost"))
    c.start(1, "11:35:00", hosts="ol1")
    c.finish(1, "11:35:30")
    c.submit(2, name="never")
    c.feed(ev.JobFinished(at=at("11:36:00"), key=2, state=JobState.EXIT, status=2304, reason=TermReason.TERM_OWNER))
    c.submit(3, name="short")
    c.feed(ev.JobDispatched(at=at("11:36:10"), key=3, attempt=1, uid="u", parts=(Placed("ol1", 1),)))
    c.feed(ev.JobFinished(at=at("11:36:12"), key=3, state=JobState.DONE, end=End(started=at("11:36:11"), at=at("11:36:12"))))
    found = told(c, tmp_path, collector)
    names = [span.name for span in found["1"]]
    assert names == ["job", "submit", *["wait", "dispatch", "start", "run", "part", "end"] * 2]
    assert found["1"][5].status.message == "host ol2 was lost"
    assert notes(found["1"][8]) == ["requeued host ol2 was lost"]
    assert [(span.name, span.status.message) for span in found["2"]] == [("job", "TERM_OWNER"), ("submit", ""), ("wait", "")]
    assert [(span.name, *seconds(span)) for span in found["3"]][-2:] == [("part", 141.0, 142.0), ("end", 142.0, 142.0)]


def test_elements_are_told_of_as_jobs_of_their_own_and_the_same_ids_are_given_again(tmp_path: Path, collector: Collector) -> None:
    c = QueryCluster()
    c.submit(5, name="arr", indices="1-3")
    c.feed(ev.DependencyJudged(at=at("11:33:52"), key=5, stands=MET))
    for index in (1, 2):
        c.start(element(5, index))
        c.finish(element(5, index), "11:34:00")
    found = told(c, tmp_path, collector)
    assert {job: values(spans[0])["lava.array"] for job, spans in found.items()} == {"5[1]": 5, "5[2]": 5}
    assert [span.name for span in found["5[2]"]] == ["job", "submit", "wait", "dispatch", "start", "run", "part", "end"]
    first = [(span.trace_id, span.span_id, span.name) for span in collector.spans]
    collector.spans.clear()
    sent(tmp_path, collector)
    assert [(span.trace_id, span.span_id, span.name) for span in collector.spans] == first
    assert len({span for _, span, _ in first}) == len(first)


def test_what_the_collector_does_not_take_is_kept_and_sent_again(tmp_path: Path, collector: Collector) -> None:
    c = QueryCluster()
    c.submit(1)
    c.start(1)
    c.finish(1)
    collector.refuse = True
    with stored(c, tmp_path):
        reader = Reader.open(f"sqlite:///{tmp_path}/lava.db")
        exporter = Exporter(collector.address)
        Traces(reader, exporter, "lava", Reasons()).advance()
        reader.close()
    assert not exporter.send()
    assert collector.refused > 0
    collector.refuse = False
    assert exporter.send()
    assert len(collector.spans) == 8
    assert exporter.send()
    assert len(collector.spans) == 8

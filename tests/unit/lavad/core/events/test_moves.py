"""The table of legal moves: each event in each state; an illegal one raises with the job's story and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lavad.core import events as ev
from lavad.core.events import IllegalMove
from lavad.core.events.apply import apply
from lavad.core.job.job import End, PendingSignal
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, SignalKind
from tests.support.worlds.bench import Bench
from tests.support.worlds.snapshot import snapshot

STATES = ["PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN"]
FIELDS: dict[str, dict[str, Any]] = {
    "JobModified": {"spec": 1, "name": "n"},
    "JobSwitched": {"spec": 1, "queue": "normal"},
    "JobMoved": {"position": 1.0},
    "JobDispatched": {"attempt": 2, "uid": "u", "parts": ()},
    "PartPrepared": {"attempt": 1, "host": "h1"},
    "GangReleased": {"attempt": 1},
    "PartStarted": {"attempt": 1, "host": "h1"},
    "PartStopped": {"attempt": 1, "host": "h1", "stopped": True},
    "PartEnded": {"attempt": 1, "host": "h1", "end": End()},
    "PartRefused": {"attempt": 1, "host": "h1", "code": "c", "why": "w"},
    "PartGone": {"attempt": 1, "host": "h1"},
    "PartFenced": {"attempt": 1, "host": "h1"},
    "SignalRequested": {"pending": PendingSignal(kind=SignalKind.KILL, at=1.0)},
    "SignalHandled": {"attempt": 1, "number": 1},
    "JobLost": {"host": "h1"},
    "JobFound": {"state": JobState.RUN},
    "CheckpointMade": {"attempt": 1, "generation": 1},
    "RunLimitMoved": {"attempt": 1, "soft": 60},
    "RusageDecayed": {"attempt": 1},
    "RanksSuspected": {"attempt": 1},
    "JobJudged": {"attempt": 1, "end": End()},
    "JobFinished": {"state": JobState.DONE},
}
SIMPLE = [
    event
    for event in ev.EVENTS
    if issubclass(event, ev.JobEvent) and event.moves
    if event.__name__ in FIELDS or event.__struct_fields__ == ("at", "key", "by")
]


def made(kind: type[ev.JobEvent], bench: Bench, key: int) -> ev.JobEvent:
    return kind(at=bench.now, key=key, **FIELDS.get(kind.__name__, {}))


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", SIMPLE, ids=[kind.__name__ for kind in SIMPLE])
def test_each_event_in_each_state(bench: Bench, kind: type[ev.JobEvent], state: str) -> None:
    key = bench.placed(state)
    before = snapshot(bench.cluster)
    event = made(kind, bench, key)
    if JobState[state] in kind.moves:
        apply(bench.cluster, event)
        assert bench.cluster.version == before["version"] + 1
    else:
        with pytest.raises(IllegalMove) as raised:
            apply(bench.cluster, event)
        assert kind.__name__ in str(raised.value)
        assert state in str(raised.value)
        assert f"key={key}" in str(raised.value)
        assert snapshot(bench.cluster) == before


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("kind", SIMPLE, ids=[kind.__name__ for kind in SIMPLE])
def test_each_event_at_an_untouched_element(bench: Bench, kind: type[ev.JobEvent], held: bool) -> None:
    """An event that it cannot meet leaves it untouched."""
    job = bench.submit(array="1-3", held=held)
    before = snapshot(bench.cluster)
    event = made(kind, bench, 2 << 32 | job)
    try:
        apply(bench.cluster, event)
    except IllegalMove:
        assert snapshot(bench.cluster) == before
    else:
        assert 2 not in bench.cluster.arrays.rows[job].pending.union(bench.cluster.arrays.rows[job].held)


@pytest.mark.parametrize("kind", SIMPLE, ids=[kind.__name__ for kind in SIMPLE])
@pytest.mark.parametrize("key", [77, 77 << 32 | 1, 9 << 32 | 77])
def test_each_event_at_what_is_not_live(bench: Bench, kind: type[ev.JobEvent], key: int) -> None:
    bench.submit(array="1-3")
    before = snapshot(bench.cluster)
    with pytest.raises(IllegalMove, match="not live"):
        apply(bench.cluster, made(kind, bench, key))
    assert snapshot(bench.cluster) == before


def test_events_of_another_attempt(bench: Bench) -> None:
    key = bench.placed()
    before = snapshot(bench.cluster)
    with pytest.raises(IllegalMove, match="attempt 7 is not the current one"):
        apply(bench.cluster, ev.PartGone(at=bench.now, key=key, attempt=7, host="h1"))
    assert snapshot(bench.cluster) == before


def test_killed_elements_are_counted_once(bench: Bench) -> None:
    job = bench.submit(array="1-4")
    for _ in range(2):
        apply(bench.cluster, ev.ElementsKilled(at=bench.now, key=job, elements=Ranges.span(1, 2)))
    assert bench.cluster.arrays.rows[job].exited == 2

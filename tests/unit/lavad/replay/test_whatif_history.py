"""What-if on a history and on live jobs: unchanged it is what was recorded; changed it is what such a cluster would do."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import FairShare, Limits, Preemption
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec
from lavad.core.lang.ranges import Ranges
from lavad.core.site.conf import Conf, Params
from lavad.core.site.host import Facts
from lavad.replay.changes import Changes, changed_actions
from lavad.replay.history import Numbered, write
from lavad.replay.main import main
from lavad.replay.past import Guess, read_past
from lavad.replay.simulate import simulate
from lavad.replay.swf import TraceJob
from lavad.replay.virtual import Life, Virtual
from tests.support.examples import examples

Capture = pytest.CaptureFixture[str]
NOW = 1_000_000.0
CONF = Conf(
    queues=(
        QueueConfig(name="normal", priority=30),
        QueueConfig(name="fair", priority=30, share=FairShare(shares=(("ann", 2), ("default", 1)))),
        QueueConfig(name="urgent", priority=50, preemption=Preemption(preemptive=True, preempts=(("normal", None),))),
        QueueConfig(name="big", priority=40, slot_reserve=1000),
    ),
    hosts=(HostConfig(name="h1", slots=4), HostConfig(name="h2", slots=4)),
    params=Params(parallel_sched_by_slot=True),
)


def cluster_actions(conf: Conf = CONF, hosts: int = 2, at: float = NOW) -> list[ev.Event]:
    actions: list[ev.Event] = [ev.MasterStarted(at=at, epoch=1, incarnation="i"), ev.Configured(at=at, conf=conf)]
    for number in range(1, hosts + 1):
        actions.append(ev.HostJoined(at=at, host=f"h{number}", facts=Facts(ncpus=4, max_mem=1000)))
        actions.append(ev.HostUp(at=at, host=f"h{number}"))
    return actions


def lived(actions: list[ev.Event], lives: dict[int, float]) -> list[Numbered]:
    """A history: what a cluster made of these actions, where each job runs for so many seconds."""
    virtual = Virtual(Cluster(), lambda job: Life(lives[job.key & 0xFFFFFFFF]), {}, actions[0].at)
    virtual.history = []
    virtual.add(actions)
    virtual.run()
    return [Numbered(number, event) for number, event in enumerate(virtual.history, 1)]


def submitted(key: int, at: float, spec: Spec, indices: str = "") -> list[ev.Event]:
    array = Ranges.parse(indices) if indices else None
    return [
        ev.SpecAdded(at=at, spec=key, value=spec),
        ev.JobSubmitted(at=at, key=key, spec=key, name="job", indices=array, spec_text=f"job[{indices}]" if indices else ""),
    ]


jobs = st.tuples(
    st.integers(0, 60),
    st.sampled_from(["normal", "fair", "urgent", "big"]),
    st.sampled_from(["ann", "bob"]),
    st.integers(1, 8),
    st.integers(1, 40),
    st.sampled_from([None, 20, 60]),
    st.sampled_from(["", "", "1-3"]),
)


@settings(max_examples=examples(60))
@given(st.lists(jobs, min_size=1, max_size=20))
def test_unchanged_it_is_what_was_recorded(rows):
    actions = cluster_actions()
    lives = {}
    for key, (at, queue, user, slots, seconds, limit, indices) in enumerate(sorted(rows, key=lambda row: row[0]), 1):
        spec = Spec(user=user, queue=queue, slots=slots, max_slots=slots, limits=Limits(run=limit), project=f"p{key}")
        actions += submitted(key, NOW + at, spec, indices)
        lives[key] = float(seconds)
    past = read_past(lived(actions, lives))
    guess = Guess(past, past.now)
    virtual = Virtual(Cluster(), guess.life, past.specs, NOW)
    virtual.add(changed_actions(past.asked, Changes(), [], ""))
    virtual.run()
    assert virtual.done.keys() == past.runs.keys()
    assert not guess.used
    for key, run in virtual.done.items():
        assert run.start == pytest.approx(past.runs[key].start)
    assert virtual.never == virtual.skipped == 0


def many(number: int, load: float, seed: int = 3) -> tuple[list[ev.Event], dict[int, float]]:
    """Jobs of one class of users that keep 8 slots busy to this part."""
    rows = random.Random(seed)
    actions, lives, at = cluster_actions(), {}, NOW
    for key in range(1, number + 1):
        at += rows.expovariate(load * 8 / (3 * 50))
        lives[key] = rows.expovariate(1 / 50)
        slots = rows.choice([1, 2, 3, 6])
        spec = Spec(
            user=rows.choice(["ann", "bob"]),
            queue="normal",
            slots=slots,
            max_slots=slots,
            project=f"p{key}",
            limits=Limits(run=int(lives[key] * rows.uniform(1, 3)) + 1),
        )
        actions += submitted(key, at, spec)
    return actions, lives


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("past") / "history.gz")
    write(path, lived(*many(100, 0.9)))
    return path


def call(capsys: Capture, *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_changes_show(history: str, capsys: Capture, tmp_path: Path) -> None:
    """More hosts shorten waits, fewer make them longer; a host that large jobs need leaves them waiting for ever."""
    found = call(capsys, "--history", history, "--add-hosts", "2")
    assert found["recorded"]["mean_wait"] == pytest.approx(found["simulated"]["mean_wait"])
    assert found["changed"]["slots"] == 16
    assert found["changed"]["mean_wait"] < found["simulated"]["mean_wait"] / 2
    found = call(capsys, "--history", history, "--remove-hosts", "h2")
    assert found["changed"]["slots"] == 4
    assert found["changed"]["never"] > 20
    assert found["changed"]["jobs"] == 100 - found["changed"]["never"]
    picture = tmp_path / "x.svg"
    found = call(capsys, "--history", history, "--policy", "easy,conservative,fairshare,fcfs", "--plot", str(picture))
    assert list(found) == ["recorded", "simulated", "easy", "conservative", "fairshare", "fcfs"]
    assert found["easy"]["wait_percentiles"]["100"] < found["fcfs"]["wait_percentiles"]["100"]
    assert picture.read_text().count("<polyline") == 18
    assert main(["--history", history, "--users", "--add-hosts", "1", "--slots", "8", "--queue-priority", "big=90"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[1].split() == ["slots", "8", "8", "16"]
    assert text.splitlines()[2].split() == ["recorded", "simulated", "changed"]
    assert "\nann (" in text


@pytest.mark.parametrize(("policy", "within"), [("easy", 0.005), ("conservative", 0.05)])
def test_a_host_under_a_policy_is_like_a_trace(policy: str, within: float, tmp_path: Path, capsys: Capture) -> None:
    """The cluster's own reservations and backfill promise what the trace simulator's do: the same waits.

    (Where all are promised a start, the cluster lets nobody take what only seems spare: what comes back may be promised too.)
    """
    actions, lives = many(100, 0.9, seed=5)
    conf = Conf(queues=CONF.queues, hosts=(HostConfig(name="h1", slots=8),), params=CONF.params)
    actions = [*cluster_actions(conf, 1), *(action for action in actions if isinstance(action, ev.SpecAdded | ev.JobSubmitted))]
    path = str(tmp_path / "history")
    write(path, lived(actions, lives))
    found = call(capsys, "--history", path, "--policy", policy)
    specs = {action.spec: action.value for action in actions if isinstance(action, ev.SpecAdded)}
    asked = [action for action in actions if isinstance(action, ev.JobSubmitted)]
    jobs = [
        TraceJob(
            action.key,
            action.key,
            action.at,
            lives[action.key],
            specs[action.key].slots,
            float(specs[action.key].limits.run or 0),
            1,
        )
        for action in asked
    ]
    waits = [run.wait for run in simulate(jobs, 8, policy)]
    assert found[policy]["mean_wait"] == pytest.approx(sum(waits) / len(waits), rel=within)


def test_live_jobs(tmp_path: Path, capsys: Capture) -> None:
    """What runs and waits now: as it goes on, and with more hosts; run times are those of the user's jobs so far."""
    actions = cluster_actions()
    lives = dict.fromkeys(range(1, 40), 100.0)
    for key in range(1, 40):
        actions += submitted(key, NOW + key, Spec(user="ann", queue="normal", slots=4, max_slots=4, project=f"p{key}"))
    items = [item for item in lived(actions, lives) if item.event.at < NOW + 350]
    path = str(tmp_path / "history")
    write(path, items)
    found = call(capsys, "--history", path, "--live", "--add-hosts", "2")
    assert list(found) == ["as it is", "changed"]
    assert found["as it is"]["jobs"] == 39 - 6
    assert found["as it is"]["assumed"] == 33
    assert found["changed"]["makespan"] < 0.7 * found["as it is"]["makespan"]
    assert main(["--history", path, "--live", "--remove-hosts", "h9"]) == 1
    assert capsys.readouterr().err == "lava whatif: h9: no such host\n"
    assert main(["--history", path, "--queue-priority", "none=3"]) == 1
    assert capsys.readouterr().err == "lava whatif: none: no such queue\n"
    assert main(["--history", path, "--remove-hosts", "h1,h2"]) == 1
    assert capsys.readouterr().err == "lava whatif: no host is left\n"

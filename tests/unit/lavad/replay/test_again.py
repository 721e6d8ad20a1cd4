"""A recorded history, replayed, comes to the same decisions: whatever was submitted, ended, lost and restarted meanwhile."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import FairShare, JobAction, JobControl, Limits, Preemption
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import restore, take
from lavad.core.decide.control.hosts import expired, silent
from lavad.core.decide.placement import placement
from lavad.core.decide.placement.placement import accept
from lavad.core.events.apply import apply
from lavad.core.plan.cycle_record import RecordedCycle
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import GpuState, PartUsage, SoftUpdate, update
from lavad.core.site.conf import Conf, Params
from lavad.core.site.limit_book import LimitBook
from lavad.processes.recorder import Recorder
from lavad.replay import history
from lavad.replay.again import Outcome, Replay
from lavad.replay.history import HistoryError, Item, Numbered, of_file, write
from lavad.replay.repeat import main
from lavad.replica import protocol as feed
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache
from tests.support.examples import examples
from tests.support.worlds.world import World

RESREQS = [
    "",
    "",
    "rusage[mem=1126.4]",
    "order[mem]",
    "rusage[mem=0.1] order[-mem]",
    "span[hosts=1]",
    "rusage[mem=700]",
    "rusage[mem=701]",
    "{rusage[mem=16000]} || {rusage[mem=100]}@1",
    "rusage[mem=9000:duration=1:decay=1]",
    "order[binpack]",
    "order[spread]",
    "affinity[core(1)]",
    "span[ptile=2]",
    "rusage[mem=500/task]",
]
NAMES = ["h0", "h1", "h2", "h10"]
CONF = Conf(
    queues=(
        QueueConfig(name="normal", priority=30, share=FairShare(shares=(("alice", 3), ("default", 1)))),
        QueueConfig(name="night", priority=20, slot_reserve=100),
        QueueConfig(
            name="fill", priority=10, backfill=True, job_controls=(JobControl(JobAction.SUSPEND, "brequeue $LSB_JOBID"),)
        ),
        QueueConfig(
            name="urgent", priority=50, preemption=Preemption(preemptive=True, preempts=(("night", None), ("fill", None)))
        ),
    ),
    hosts=tuple(HostConfig(name=name, slots=4) for name in NAMES),
    params=Params(parallel_sched_by_slot=True),
)


class Site:
    """A master and its scheduler, which is another process: it folds what is committed, and hears what is said."""

    def __init__(self) -> None:
        self.master = World(CONF)
        self.items: list[Item] = []
        self.seed = 0
        self.replica: Cluster | None = None
        self.master.apply = self.commit  # type: ignore[method-assign]
        self.items = [
            Numbered(1, ev.MasterStarted(at=self.master.now, epoch=1, incarnation="test")),
            Numbered(2, ev.Configured(at=self.master.now, conf=CONF)),
        ]
        self.start_scheduler()
        for name in NAMES:
            self.master.hosts(name, slots=4, gpus=2)
            self.say(load={name: dict(self.master.soft.load[name])})

    def commit(self, *events: ev.Event) -> None:
        for event in events:
            apply(self.master.cluster, event)
            self.items.append(Numbered(self.master.cluster.version, event))
        self.master.cluster.forget_changes()
        if self.replica is not None:
            feed.fold(self.replica, self.soft, list(events))

    def start_scheduler(self, shuffle: random.Random | None = None) -> None:
        """It begins with a snapshot, in whatever order the master's rows are."""
        taken = take(self.master.cluster)
        if shuffle is not None:
            for rows in (taken.hosts, taken.jobs, taken.arrays, taken.specs, taken.charges, taken.learnt):
                shuffle.shuffle(rows)
        self.replica = restore(taken)
        self.soft = type(self.master.soft)()
        update(self.soft, SoftUpdate(load=dict(self.master.soft.load)))
        self.memory, self.recorder = SchedulerCache(), Recorder()

    def say(self, **news: object) -> None:
        told = SoftUpdate(**news)  # type: ignore[arg-type]
        update(self.soft, told)
        self.recorder.note(told)

    def plan(self, stale: bool = False) -> None:
        """A cycle, and what the master makes of it; ``stale``: a job has ended and another come before each part is taken."""
        now, local = self.master.now, self.master.local
        assert self.replica is not None
        plan = schedule(self.replica, self.soft, now, local, self.memory)
        if not plan.decides:
            return
        plan = replace(plan, recorded=self.recorder.record(plan, self.soft, now, local))
        cluster, kept = self.master.cluster, False
        rest: Plan | None = plan
        while rest is not None:
            if stale:
                self.end(0)
                self.master.submit()
            self.seed += 1
            decided, rest = accept(cluster, rest, now + 0.25, f"seed{self.seed}", LimitBook(cluster.conf))
            for cycle in decided.cycles:
                at = next((at for at, item in enumerate(self.items) if _seq(item) > cycle.version), len(self.items))
                self.items.insert(at, cycle)
                kept = True
            self.commit(*decided.events)
        self.recorder.done(kept)

    def end(self, number: int) -> None:
        running = [key for key in self.master.cluster.started if self.master.cluster.jobs.rows[key].state.name == "RUN"]
        if running:
            self.master.finish(running[number % len(running)])

    def use(self, number: int, amount: int) -> None:
        running = sorted(self.master.cluster.started)
        if running:
            run = self.master.cluster.jobs.rows[running[number % len(running)]].run
            assert run is not None
            key = running[number % len(running)]
            one = PartUsage(key=key, attempt=run.number, at=self.master.now, cpu=amount, rss=amount * 1024)
            self.say(usage=[(run.parts[0].host, one)])

    def lose(self, host: str) -> None:
        cluster, now = self.master.cluster, self.master.now
        if cluster.hosts.rows[host].state.name == "OK":
            self.commit(*silent(cluster, host, now))
            self.commit(*expired(cluster, host, cluster.use.hosts[host].jobs, now))
        else:
            self.commit(ev.HostUp(at=now, host=host))


def _seq(item: Item) -> int:
    return item.seq if isinstance(item, Numbered) else item.version


def replayed(site: Site, forgetful: bool = False) -> Outcome:
    return Replay(forgetful).run(site.items)


jobs = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["alice", "bob"]),
        "queue": st.sampled_from(["normal", "night", "fill", "urgent"]),
        "slots": st.sampled_from([1, 1, 2, 5, 16]),
        "resreq": st.sampled_from(RESREQS),
        "gpu": st.sampled_from(["", "", "num=1"]),
        "rerunnable": st.booleans(),
        "limits": st.sampled_from([Limits(), Limits(run=30), Limits(run=300)]),
    }
)
actions = st.one_of(
    st.tuples(st.just("submit"), jobs, st.sampled_from(["", "", "1-5"])),
    st.tuples(st.just("submit"), jobs, st.just("")),
    st.tuples(st.just("plan"), st.sampled_from([False, False, True])),
    st.tuples(st.just("plan"), st.just(False)),
    st.tuples(st.just("end"), st.integers(0, 9)),
    st.tuples(st.just("end"), st.integers(0, 9)),
    st.tuples(st.just("later"), st.sampled_from([1.0, 40.0, 4000.0])),
    st.tuples(st.just("say"), st.sampled_from(NAMES), st.floats(0, 3), st.sampled_from([500.0, 15_000.1, 16_000.0])),
    st.tuples(st.just("use"), st.integers(0, 9), st.integers(1, 900)),
    st.tuples(st.just("gpus"), st.sampled_from(NAMES), st.integers(-1, 9_000)),
    st.tuples(st.just("lose"), st.sampled_from(NAMES)),
    st.tuples(st.just("restart"), st.integers(0, 99)),
)


def act(site: Site, action: tuple[Any, ...]) -> None:
    match action:
        case ("submit", fields, array):
            site.master.submit(array=array, **fields)
        case ("plan", stale):
            site.plan(stale)
        case ("end", number):
            site.end(number)
        case ("later", seconds):
            site.master.now += seconds
        case ("gpus", name, used):
            site.say(gpus={name: (GpuState(uuid=f"GPU-{name}-0", mem_used=used),)})
        case ("say", name, r15s, mem):
            site.master.load(name, r15s=r15s, mem=mem)
            site.say(load={name: dict(site.master.soft.load[name])})
        case ("use", number, amount):
            site.use(number, amount)
        case ("lose", host):
            site.lose(host)
        case ("restart", seed):
            site.start_scheduler(random.Random(seed))


def job(queue: str, slots: int = 1, array: str = "", run: int | None = None) -> tuple[Any, ...]:
    fields = {"user": "alice", "queue": queue, "slots": slots, "resreq": "", "gpu": "", "rerunnable": False}
    return ("submit", {**fields, "limits": Limits(run=run)}, array)


FILLED_BESIDE_A_PROMISE = [
    job("normal"),
    job("normal"),
    job("normal", 5),
    *[("plan", False)] * 11,
    ("lose", "h2"),
    job("normal"),
    job("normal"),
    job("normal"),
    job("fill", array="1-5", run=30),
    ("plan", False),
    ("plan", False),
    ("end", 0),
    job("night", 2),
    job("normal"),
    ("end", 0),
]
"""What is promised in this very cycle leaves no slot free, but short jobs may use it."""


@settings(max_examples=examples(150))
@example(FILLED_BESIDE_A_PROMISE, 512)
@example([job("normal", 2, array="1-5"), job("normal", 3), ("plan", True), ("plan", False)], 2)
@given(st.lists(actions, min_size=25, max_size=70), st.sampled_from((1, 2, 512)))
def test_a_replay_decides_the_same(story, at_once):
    """Also of plans that are taken in parts, between which something happens."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "AT_ONCE", at_once)
        site = Site()
        for action in [*story, ("plan", False)]:
            act(site, action)
        for forgetful in (False, True):
            outcome = replayed(site, forgetful)
            assert outcome.first is None
            assert outcome.equal == outcome.plans == sum(isinstance(item, RecordedCycle) for item in site.items)


def busy_site() -> Site:
    site = Site()
    for number in range(30):
        site.master.submit(user=("alice", "bob")[number % 2], queue="normal", slots=1 + number % 3)
        site.plan(number % 7 == 0)
        if number % 4 == 3:
            site.end(number)
        site.master.now += 1
    return site


def test_another_decision_is_found():
    """What was recorded is changed: the replay names the first plan that comes out otherwise."""
    site = busy_site()
    assert replayed(site).first is None
    at = next(at for at, item in enumerate(site.items) if isinstance(item, Numbered) and type(item.event) is ev.JobDispatched)
    item = site.items[at]
    assert isinstance(item, Numbered)
    assert isinstance(item.event, ev.JobDispatched)
    part = replace(item.event.parts[0], host="h2" if item.event.parts[0].host != "h2" else "h1")
    site.items[at] = Numbered(item.seq, replace(item.event, parts=(part,)))
    outcome = replayed(site)
    assert outcome.equal < outcome.plans
    assert outcome.first is not None
    assert part.host in outcome.first.recorded
    assert part.host not in outcome.first.replayed


def test_a_history_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    site = busy_site()
    for name in ("history", "history.gz"):
        path = str(tmp_path / name)
        assert write(path, site.items) == len(site.items) + 1
        assert list(of_file(path)) == site.items
        assert main([path]) == 0
        plans = sum(isinstance(item, RecordedCycle) for item in site.items)
        assert f"equal: {plans} of {plans} plans" in capsys.readouterr().out


def test_what_is_no_history(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "history"
    for text, story in (
        ("", "empty"),
        ("x\n", ":1: not a line"),
        ('{"lava":"history","format":9}\n', "format 9"),
        ('{"lava":"history","format":1}\n{"seq":2,"event":{"is":"HostUp","at":1,"host":"h"}}\n', "event 1 is missing"),
        ('{"lava":"history","format":1}\n{"seq":1,"event":{"is":"JobHeld","at":1,"key":7}}\n', "does not fit"),
    ):
        path.write_text(text)
        assert main([str(path)]) == 1
        assert story in capsys.readouterr().err
    monkeypatch.setattr(history, "LONGEST", 1 << 20)
    for text in ("", '{"lava":"history","format":1}\n'):
        with gzip.open(zeros := tmp_path / "zeros.gz", "wb") as file:
            file.write(text.encode() + bytes(64 << 20))
        tracemalloc.start()
        assert main([str(zeros)]) == 1
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
        tracemalloc.stop()
        assert "a line longer than 1 MB" in capsys.readouterr().err
    with pytest.raises(HistoryError, match="No such file"):
        list(of_file(str(tmp_path / "none")))
    assert main(["--database", f"sqlite:///{tmp_path}/none"]) == 1
    assert "there is no store" in capsys.readouterr().err


def test_a_plan_that_was_not_stored_is_told_with_the_next():
    """The master may drop a plan whole: what it was decided on is then told again."""
    site = Site()
    site.master.submit(slots=1)
    assert site.replica is not None
    plan = schedule(site.replica, site.soft, site.master.now, site.master.local, site.memory)
    assert site.recorder.record(plan, site.soft, site.master.now, site.master.local).anew
    site.recorder.done(kept=False)
    site.plan()
    assert replayed(site).equal == 1
    site.say(load={"h1": {"r15s": 3.0, "mem": 5.0}})
    site.recorder.record(plan, site.soft, site.master.now, site.master.local)
    site.recorder.done(kept=False)
    for _ in range(9):
        site.master.submit(slots=2, resreq="rusage[mem=4]")
        site.plan()
    assert replayed(site).first is None


def test_what_gpus_have_in_use_is_recorded():
    """Else the replay would give the first GPU."""
    site = Site()
    site.say(gpus={name: (GpuState(uuid=f"GPU-{name}-0", mem_used=50_000),) for name in NAMES})
    for turn in range(2):
        job = site.master.submit(gpu="num=1:j_exclusive=yes", hosts=("h0",))
        site.plan()
        run = site.master.cluster.jobs.rows[job].run
        assert run is not None
        assert run.parts[0].gpus == (f"GPU-h0-{1 - turn}",)
    outcome = replayed(site)
    assert outcome.plans == outcome.equal == 2

"""The history of fair share is the fold of the events: after a restart, a replay and in a replica priorities are the same."""

from __future__ import annotations

import random

import pytest

from config.model.queue import QueueConfig
from config.model.values import FairShare, Limits
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.snapshot import restore, take
from lavad.core.events.apply import apply
from lavad.core.job.job import End, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.states import JobState
from lavad.core.plan.volatile import Soft
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts
from lavad.replica import protocol as feed
from lavad.sched.order.fairshare import make_tree, queue_policies
from lavad.store.load import load
from lavad.store.read import Reader
from lavad.store.writer import Store
from tests.support.stores.stores import commit, store, store_url  # noqa: F401

NOW = 1_700_000_000.0
USERS = ("ann", "bob", "cid", "zoe")
SHARE = FairShare(
    shares=(("dev", 3), ("default", 1)),
    enable_hist_run_time=True,
    enable_gpu_hist_run_time=True,
    gpu_run_time_factor=1.0,
    committed_run_time_factor=0.3,
    run_time_decay=True,
    queues=("low",),
)
CONF = Conf(
    queues=(QueueConfig(name="high", priority=40, share=SHARE), QueueConfig(name="low"), QueueConfig(name="plain")),
    user_groups=(("dev", ("ann", "bob")),),
    group_shares=(("dev", (("ann", 1), ("bob", 2))),),
)


def history(seed: int) -> list[list[ev.Event]]:
    """Batches of events: jobs of several users and groups that start, end, are requeued or go on running."""
    rng = random.Random(seed)
    at = NOW
    head: list[ev.Event] = [ev.MasterStarted(at=at, epoch=0, incarnation="i"), ev.Configured(at=at, conf=CONF)]
    head += [ev.HostJoined(at=at, host="h1", facts=Facts(ncpus=1000)), ev.HostUp(at=at, host="h1")]
    specs = [
        Spec(user=user, queue=queue, slots=slots, user_group=group, limits=Limits(run=7200))
        for user in USERS
        for queue in ("high", "low", "plain")
        for slots in (1, 3)
        for group in ("", "dev")
    ]
    head += [ev.SpecAdded(at=at, spec=number, value=spec) for number, spec in enumerate(specs, 1)]
    batches = [head]
    for key in range(1, 60):
        at += rng.uniform(1, 500)
        number = rng.randrange(len(specs))
        parts = (Placed(host="h1", slots=specs[number].slots, gpus=("G1",) * rng.randrange(2)),)
        batch: list[ev.Event] = [ev.JobSubmitted(at=at, key=key, spec=number + 1, name="j")]
        batch.append(ev.JobDispatched(at=at, key=key, attempt=1, uid=f"{key}", parts=parts))
        batch.append(ev.PartStarted(at=at, key=key, attempt=1, host="h1", started=at - rng.random()))
        fate = rng.random()
        ended = at + rng.uniform(1, 20_000)
        end = End(at=ended, utime=rng.uniform(0, 9000), stime=rng.random())
        if fate < 0.7:
            batch.append(ev.PartEnded(at=ended, key=key, attempt=1, host="h1", end=end))
            batch.append(ev.PartGone(at=ended, key=key, attempt=1, host="h1"))
            over = ev.JobRequeued(at=ended, key=key) if fate < 0.1 else ev.JobFinished(at=ended, key=key, state=JobState.DONE)
            batch.append(over)
        batches.append(batch)
    return batches


def priorities(cluster: Cluster) -> dict[str, float]:
    """Every node of the tree, to the last bit."""
    tree = make_tree(queue_policies(cluster.conf)["high"], cluster, Soft(), NOW + 50_000.0)
    for user in USERS:
        for group in ("", "dev"):
            tree.leaf(user, group)
    found = {}
    waiting = [("", tree.root)]
    while waiting:
        name, node = waiting.pop()
        found[name] = tree.priority(node)
        waiting += [(f"{name}/{child.name}", child) for child in node.children.values()]
    return found


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_priorities_survive_restart_replay_and_snapshot(store: Store, store_url: str, seed: int) -> None:  # noqa: F811
    """What each user has used is in the store and gives the same priorities to the last bit."""
    live, middle = Cluster(), Cluster()
    for number, batch in enumerate(history(seed)):
        if number == 30:
            middle = restore(take(live))
        commit(store, live, batch)
        if number >= 30:
            feed.fold(middle, Soft(), batch)
    assert {account[0] for account in live.charges.rows} == {"high", "low"}, "a queue without fair share keeps no history"
    loaded = load(store)
    assert loaded.charges.rows == live.charges.rows
    assert loaded.accounts.rows == live.accounts.rows
    reader = Reader.open(store_url)
    replayed = Cluster()
    for _, event in reader.events_after(0, 10_000):
        apply(replayed, event)
    reader.close()
    wanted = priorities(live)
    assert len(wanted) > 5
    for other in (loaded, replayed, middle):
        assert priorities(other) == wanted


def test_a_batch_that_is_undone_charges_nothing() -> None:
    live = Cluster()
    batches = history(4)
    for batch in batches[:20]:
        for event in batch:
            apply(live, event)
    live.forget_changes()
    before, version = priorities(live), live.version
    rows = dict(live.charges.rows)
    for batch in batches[20:40]:
        for event in batch:
            apply(live, event)
    assert dict(live.charges.rows) != rows
    live.undo_changes()
    live.version = version
    assert dict(live.charges.rows) == rows
    assert priorities(live) == before

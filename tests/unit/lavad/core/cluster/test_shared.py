"""What many jobs have in common is in memory once, wherever they come from."""

from __future__ import annotations

import msgspec

from lavad.core.cluster import shared, snapshot
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.shared import Shared
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText
from tests.support.worlds.world import World


def jobs_of(cluster: Cluster) -> list[Job]:
    return list(cluster.jobs.rows.values())


def test_jobs_of_one_name_and_time_share_them() -> None:
    world = World()
    for name in ("step", "other", "step"):
        world.submit(name=name)
    text = msgspec.msgpack.encode(snapshot.take(world.cluster))
    first, other, third = jobs_of(snapshot.restore(msgspec.msgpack.decode(text, type=snapshot.Snapshot)))
    assert first.name is third.name
    assert first.since is first.submitted is other.submitted is third.since
    assert [job.name for job in (first, other, third)] == ["step", "other", "step"]


def test_pending_jobs_of_a_class_in_order_have_one_number_and_others_each_their_own() -> None:
    world = World()
    keys = [world.submit() for _ in range(3)]
    [pending] = world.cluster.pending.values()
    assert [pending.came(key) for key in keys] == [1, 1, 1]
    world.now -= 100
    late = [world.submit() for _ in range(2)]
    assert not pending.ordered
    assert len({pending.came(key) for key in [keys[0], *late]}) == 3


def test_what_is_remembered_has_bounds() -> None:
    kept = Shared()
    for number in range(shared.MOST * 3):
        kept.share(JobText(command=f"c {number}"), "command")
    assert len(kept._seen) <= shared.MOST
    one, same = ("x" * (shared.LONGEST + 1) for _ in range(2))
    texts = [JobText(command=one), JobText(command=same)]
    for text in texts:
        kept.share(text, "command")
    assert texts[0].command is not texts[1].command

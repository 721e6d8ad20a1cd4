"""Fair share over virtual days: usage goes to the shares, nobody starves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from config.model.queue import QueueConfig
from config.model.values import FairShare
from lavad.core.site.conf import Conf, Params
from tests.support.worlds.virtual_time import VirtualSite
from tests.support.worlds.world import World

HOURS = 3600.0
WAITING = 40


def keep_waiting(users: dict[str, int]) -> Callable[[World], None]:
    """Each user always has jobs that wait; the number is the job's slots."""

    def refill(world: World) -> None:
        waiting = dict.fromkeys(users, 0)
        for number, jobs in world.cluster.pending.items():
            waiting[world.cluster.specs.rows[number].user] += len(jobs)
        for user, slots in users.items():
            if waiting[user] < WAITING // 2:
                for _ in range(WAITING - waiting[user]):
                    world.submit(user=user, slots=slots)

    return refill


def site(share: FairShare, hosts: int = 10, **conf: object) -> World:
    queue = QueueConfig(name="fair", priority=30, share=share)
    world = World(Conf(queues=(queue,), params=Params(parallel_sched_by_slot=True), **conf))  # type: ignore[arg-type]
    world.hosts(*(f"h{at}" for at in range(hosts)), slots=12)
    return world


def ratios(site: VirtualSite, shares: dict[str, int]) -> dict[str, float]:
    """What each user got for each share of what there was to get: 1.0 is just right."""
    got, total = sum(site.slot_seconds[user] for user in shares), sum(shares.values())
    return {user: site.slot_seconds[user] / got / (count / total) for user, count in shares.items()}


@pytest.mark.parametrize("hist_run", [False, True])
def test_three_users_get_one_two_three(hist_run: bool) -> None:
    """Users with shares 1:2:3 come within 5 % of them over ten virtual hours."""
    shares = {"ann": 1, "bob": 2, "cid": 3}
    world = site(FairShare(shares=tuple(shares.items()), enable_hist_run_time=hist_run))
    run = VirtualSite(world, length=lambda user: {"ann": 1700.0, "bob": 1100.0, "cid": 1450.0}[user])
    run.run(10 * HOURS, keep_waiting({"ann": 1, "bob": 2, "cid": 1}))
    found = ratios(run, shares)
    assert all(abs(ratio - 1) < 0.05 for ratio in found.values()), found
    assert sum(run.slot_seconds.values()) > 0.97 * 10 * HOURS * 120


def test_a_tree_of_departments_and_teams() -> None:
    """A department's share is divided among its teams, and a team's among its users, within 5 %."""
    groups = (
        ("physics", ("theory", "lab")),
        ("theory", ("ann", "bob")),
        ("lab", ("cid",)),
        ("maths", ("dan", "eve")),
    )
    group_shares = (("physics", (("theory", 1), ("lab", 2))), ("theory", (("ann", 1), ("bob", 3))))
    share = FairShare(shares=(("physics", 3), ("maths", 1)))
    world = site(share, hosts=16, user_groups=groups, group_shares=group_shares)
    run = VirtualSite(world, length=lambda user: 1500.0 + 100 * ord(user[0]) % 700)
    run.run(16 * HOURS, keep_waiting(dict.fromkeys(("ann", "bob", "cid", "dan", "eve"), 1)))
    used = run.slot_seconds
    total = sum(used.values())
    wanted = {"cid": 0.75 * 2 / 3, "ann": 0.75 / 3 / 4, "bob": 0.75 / 3 * 3 / 4}
    for user, part in wanted.items():
        assert used[user] / total == pytest.approx(part, rel=0.05), (user, {u: s / total for u, s in used.items()})
    # maths has no shares of its own: its members are served in the order of their jobs
    assert (used["dan"] + used["eve"]) / total == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize("most", [4, 20])
def test_whoever_is_entitled_to_a_slot_does_not_starve(most: int) -> None:
    """The condition: a user's part of all slots is at least one. (RUN_JOB_FACTOR counts one slot for nothing, so that LSF's
    formula never serves a smaller share while larger ones want everything.)
    """
    shares = {"small": 1, **{f"u{at}": most for at in range(6)}}
    world = site(FairShare(shares=tuple(shares.items())), hosts=-(-(1 + 6 * most) // 12))
    run = VirtualSite(world, length=lambda user: 900.0)
    run.run(5 * HOURS, keep_waiting(dict.fromkeys(shares, 1)))
    assert run.slot_seconds["small"] > 2.5 * HOURS
    assert run.waited["small"] < 5 * HOURS


def test_who_comes_late_is_not_made_to_wait_for_history() -> None:
    """A user who never used anything goes before those who did, until they are even."""
    world = site(FairShare(shares=(("default", 1),)))
    run = VirtualSite(world, length=lambda user: 1200.0)
    run.run(6 * HOURS, keep_waiting({"old": 1}))
    before = dict(run.slot_seconds)
    run.slot_seconds.clear()
    run.run(2 * HOURS, keep_waiting({"old": 1, "new": 1}))
    assert run.slot_seconds["new"] > run.slot_seconds["old"] > 0, before

"""The fair share part of bqueues -l and -r: policies, shares, and the table of who has used what."""

from __future__ import annotations

from collections.abc import Iterator

from config.model.queue import QueueConfig
from config.model.values import Aps
from lavad.queries.facts import shares
from lavad.queries.facts.queuefacts import QueueRow
from lavad.sched.order.fairshare import queue_policies


def words(conf: QueueConfig) -> list[str]:
    """Names for SCHEDULING POLICIES."""
    found = []
    if conf.aps_priority is not None:
        found.append("APS_PRIORITY")
    if conf.share is not None and conf.share.round_robin:
        found.append("ROUND_ROBIN_POLICY")
    elif conf.share is not None and conf.share.shares != (("others", 1),):
        found.append("FAIRSHARE")
    return found


def section(row: QueueRow, deep: bool) -> Iterator[str]:
    """What follows the policies; nothing for a queue without any."""
    conf = row.conf
    if conf.aps_priority is not None:
        yield _aps(conf.aps_priority)
    policy = queue_policies(row.view.cluster.conf).get(conf.name)
    if policy is None or ("FAIRSHARE" not in words(conf) and "ROUND_ROBIN_POLICY" not in words(conf)):
        if policy is not None and policy.name != conf.name:
            yield f"FAIRSHARE:  by queue {policy.name}\n"
        return
    share = policy.share
    if len(policy.queues) > 1:
        title = "QUEUE_GROUP" if conf.aps_priority is not None else "FAIRSHARE_QUEUES"
        yield f"{title}:  {' '.join(policy.queues)}\n"
    if share.by_queue:
        yield "DISPATCH_ORDER:  QUEUE\n"
    if share.dominant_resources:
        yield f"DOMINANT_RESOURCES:  {' '.join(share.dominant_resources)}\n"
    yield f"USER_SHARES:  {shares.text(policy.shares)}\n"
    yield from shares.tables(row.view, policy, row.now, conf.name, deep)


def _aps(aps: Aps) -> str:
    lines = ["APS_PRIORITY:\n"]
    weights, limits, graces = dict(aps.weights), dict(aps.limits), dict(aps.graces)
    lines.append(f"{'FACTOR':<14}{'WEIGHT':>10}{'LIMIT':>10}{'GRACE_PERIOD':>14}\n")
    for name in dict.fromkeys((*weights, *limits, *graces)):
        grace = f"{graces[name]:g}s" if name in graces else "-"
        cells = (f"{weights[name]:g}" if name in weights else "-", f"{limits[name]:g}" if name in limits else "-")
        lines.append(f"{name:<14}{cells[0]:>10}{cells[1]:>10}{grace:>14}\n")
    return "".join(lines)

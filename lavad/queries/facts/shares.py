"""Who is served first: the share tables of bqueues -r and -l and of bhpart, and the absolute priority of waiting jobs.

Rule: the numbers are the scheduler's own, computed from this version of the cluster at the time of the query.
"""

from __future__ import annotations

from collections.abc import Iterator

from config.model.values import Shares
from lavad.core.job.job import Job
from lavad.queries.frame import formats
from lavad.queries.frame.view import View
from lavad.sched.line.queue_iterator import absolute_priority
from lavad.sched.order.fairshare import make_tree
from lavad.sched.order.share_tree import Node, Policy, Tree
from lavad.sched.state.cycle_state import CycleState
from lavad.sched.state.scheduler_cache import SchedulerCache

HEADER = "USER/GROUP   SHARES  PRIORITY  STARTED  RESERVED  CPU_TIME  RUN_TIME   ADJUST"


def tables(view: View, policy: Policy, now: float, title: str, deep: bool) -> Iterator[str]:
    """``SHARE_INFO_FOR: title`` with a line for each user or group, and (``deep``) the same for each group below."""
    tree = full_tree(view, policy, now)
    yield from _table(tree, tree.root, title, deep)


def full_tree(view: View, policy: Policy, now: float) -> Tree:
    """A policy's tree with all that the configuration names, and the users of waiting jobs."""
    tree = make_tree(policy, view.cluster, view.soft, now)
    for path in policy.entries():
        tree.node(path)
    for user in _waiting(view, policy):
        tree.leaf(*user)
    return tree


def _waiting(view: View, policy: Policy) -> list[tuple[str, str]]:
    """Users of waiting jobs: a share by ``default`` shows as soon as there is a job."""
    specs = [view.cluster.specs.rows[number] for number in view.cluster.pending]
    return sorted({(spec.user, spec.user_group) for spec in specs if spec.queue in policy.queues})


def _table(tree: Tree, above: Node, title: str, deep: bool) -> Iterator[str]:
    share = tree.policy.share
    gpus = "  GPU_RUN_TIME" if share.gpu_run_time_factor else ""
    most = "  DOMINANT_SHARE" if share.dominant_resources else ""
    yield f"\nSHARE_INFO_FOR: {title}/\n{HEADER}{gpus}{most}\n"
    nodes = sorted(above.children.values(), key=lambda node: (-tree.priority(node), node.at, node.name))
    for node in nodes:
        yield _line(tree, node)
    for node in nodes if deep else ():
        if node.children:
            yield from _table(tree, node, f"{title}/{node.name}", deep)


def _line(tree: Tree, node: Node) -> str:
    share = tree.policy.share
    priority = f"{tree.priority(node):.3f}" if tree.priority(node) < 1e6 else "max"
    cells = [f"{node.name:<12} {node.shares:>6}", f"{priority:>10}", f"{node.slots:>9}", f"{node.reserved:>10}"]
    cells += [f"{node.cpu:>10.1f}", f"{node.run + node.hist_run:>10.0f}", f"{0.0:>9.3f}"]
    if share.gpu_run_time_factor:
        cells.append(f"{node.gpu + node.hist_gpu:>14.0f}")
    if share.dominant_resources:
        name = max(share.dominant_resources, key=lambda name: tree.fraction(node, name))
        cells.append(f"{f'{name} {tree.fraction(node, name):.3f}':>16}")
    return formats.joined(*cells) + "\n"


def text(shares: Shares) -> str:
    """``[ann, 1] [dev, 3] ``."""
    return "".join(f"[{name}, {count}] " for name, count in shares)


class AbsolutePriorities:
    """APS of waiting jobs, as the scheduler computes it."""

    def __init__(self, view: View, now: float) -> None:
        self._state = CycleState(view.cluster, view.soft, now, formats.week_second(now), SchedulerCache())

    def find(self, job: Job) -> float | None:
        """The job's; None where its queue has no APS_PRIORITY."""
        return absolute_priority(self._state, job.spec, job.submitted)


def priority_text(value: float | None) -> str:
    """Two decimals; "" for none."""
    return "" if value is None else f"{value:.2f}"

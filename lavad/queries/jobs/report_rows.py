"""The rows of lava report: finished jobs by user, project, queue or user group, summed up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from lavad.core.job import checkpoints, gpu_use
from lavad.core.job.checkpoints import CheckpointSums
from lavad.core.job.gpu_use import GpuSums
from lavad.queries.frame.request import Request
from lavad.store.asked import Share

HOUR = 3600.0
KWH = 3_600_000.0
NO_GROUP = "(none)"


class Row(NamedTuple):
    """The jobs of one user, project …; times in seconds."""

    name: str
    jobs: int
    slots: float
    cpu: float
    gpu_jobs: int
    gpus: GpuSums
    checkpoints: CheckpointSums
    exited: int
    wait: float
    longest_wait: float
    slots_wasted: float
    """Without CPU time, of each job."""

    @property
    def mean_wait(self) -> float:
        return self.wait / self.jobs if self.jobs else 0.0


def grouped(request: Request, shares: list[Share], group: str) -> list[Row]:
    """A row for each user, project, queue or user group, by name. A user of two groups counts in both."""
    members: defaultdict[str, list[Share]] = defaultdict(list)
    groups = request.cluster.conf.user_groups if group == "group" else ()
    users = {name: request.cluster.conf.groups_of_users.users(name) for name, _ in groups}
    for share in shares:
        if group == "site":
            names = [request.view.name]
        elif group == "group":
            names = [name for name, those in users.items() if share.user in those] or [NO_GROUP]
        else:
            names = [getattr(share, group)]
        for name in names:
            members[name].append(share)
    return [summed(name, members[name]) for name in sorted(members)]


def summed(name: str, shares: Iterable[Share]) -> Row:
    """All of them together."""
    shares = list(shares)
    return Row(
        name,
        sum(share.jobs for share in shares),
        sum(share.slots for share in shares),
        sum(share.cpu for share in shares),
        sum(share.gpu_jobs for share in shares),
        gpu_use.total(share.gpus for share in shares),
        checkpoints.total(share.checkpoints for share in shares),
        sum(share.exited for share in shares),
        sum(share.wait for share in shares),
        max((share.longest_wait for share in shares), default=0.0),
        sum(share.slots_wasted for share in shares),
    )


def waste(lost: float, held: float) -> str:
    """``35%``; ``-`` where nothing was held."""
    return f"{100 * max(0.0, lost) / held:.0f}%" if held else "-"

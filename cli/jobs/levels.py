"""Roles of a manifest of which some wait for the end of others: a job for each step, each behind the one before it."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass, field

from cli.jobs.fields import Fields
from cli.jobs.model import JobFile, Role


@dataclass
class Order:
    """When a role starts. ``where`` names it in errors."""

    role: Role
    where: Fields
    ready: list[str] = field(default_factory=list)
    """Roles that have been started before."""
    done: list[str] = field(default_factory=list)
    """Roles that have ended well before."""


def read_levels(orders: list[Order], job: JobFile) -> None:
    """Who of the roles runs together (``levels``), and who starts after whom; a role names only roles before it.

    Raises Fail where a role would have to run beside two of which one waits for the other's end.
    """
    level: dict[str, int] = {}
    for one in orders:
        name = one.role.name
        level[name] = max([0, *(level[other] for other in one.ready), *(level[other] + 1 for other in one.done)])
    last = max(level.values())
    ended = {name for one in orders for name in one.done}
    beside = {one.role.name: [other for other in orders if one.role.name in other.ready] for one in orders}
    for one in reversed(orders):
        # who is not waited for to end runs beside those that need it, or at last
        name = one.role.name
        if name not in ended:
            level[name] = min((level[other.role.name] for other in beside[name]), default=last)
    for one in orders:
        name = one.role.name
        late = next(
            (other.role.name for other in beside[name] if name not in ended and level[other.role.name] != level[name]), ""
        )
        late = late or next((other for other in one.done if level[other] >= level[name]), "")
        if late:
            raise one.where.fail("dependsOn", f"{name} would have to run beside {late} and beside what {late} waits for")
        one.role.after = [other for other in one.ready if level[other] == level[name]]
    job.levels = [[one.role.name for one in orders if level[one.role.name] == step] for step in range(last + 1)]


def split(job: JobFile, where: Fields) -> list[JobFile]:
    """The job of each level, in their order; the last one is the job's own. Raises Fail for what cannot be split."""
    if len(job.levels) < 2:
        return [job]
    found: list[JobFile] = []
    for names in job.levels:
        one = copy(job)
        one.options, one.policy, one.levels = dict(job.options), copy(job.policy), []
        one.roles = [role for role in job.roles if role.name in names]
        one.images = {name: image for name, image in job.images.items() if name in names}
        if not any(role.gpus for role in one.roles):
            one.options.pop("gpu", None)
        one.before, one.ignored = [("done", earlier) for earlier in found[-1:]], []
        if names is not job.levels[-1]:
            one.policy.success, one.policy.framework, one.policy.nproc, one.elastic = "all", "", 0, False
            if "J" in one.options:
                one.options["J"] = f"{one.options['J']}-{names[0]}"
        if found:
            one.options["ti"] = True  # it never runs where the one before it has failed
            one.options.pop("H", None)
        found.append(one)
    rule = job.policy.success
    early = [role.name for role in job.roles if role.name not in job.levels[-1]]
    if rule == "any" or any(word.partition("[")[0] in early for word in re.split(r"[,&|() ]+", rule)):
        raise where.fail("successPolicy", f"the job is done when its last step is, and {', '.join(early)} come before it")
    found[0].ignored = job.ignored
    return found

"""How many live records a user may have (MAX_USER_RECORDS): jobs, arrays, and elements with a record of their own."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.records import units_of_spec
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused

FULL = "Pending job threshold reached"
TOO_MANY = f"{FULL} (MAX_USER_RECORDS)"


def has_room(cluster: Cluster, user: str, units: int) -> bool:
    """Whether the user may have so much more."""
    return cluster.records[user] + units <= cluster.conf.params.max_user_records


def check_room(cluster: Cluster, user: str, units: int) -> None:
    """Raises Refused, for a command that tries again, where the user has too much already."""
    if not has_room(cluster, user, units):
        raise full(cluster, TOO_MANY)


def full(cluster: Cluster, why: str = FULL) -> Refused:
    """The refusal of a submission that may be taken later."""
    return Refused(why, retry=cluster.conf.params.sub_try_interval)


def units_of_new(cluster: Cluster, spec: Spec) -> int:
    """Units of a spec that a job is about to have: 0 where a live job has it."""
    number = cluster.spec_numbers.get(spec)
    return 0 if number is not None and number in cluster.spec_jobs else units_of_spec(spec)

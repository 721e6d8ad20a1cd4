"""Jobs that a plan starts alike on one host: once the first holds, the others are counted, not looked at each.

They are elements of one array, or separate jobs of one class. Rule: only where nothing but slots is left to compete for; all
others are checked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.job_rows import JobRows
from lavad.core.job.spec import Spec
from lavad.core.lang.ids import index_of, job_of
from lavad.core.plan.plan import Placement
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.limits import Limits


def count_alike(
    ledger: Ledger, limits: Limits, placements: Sequence[Placement], at: int, spec: Spec, placed: Container[int]
) -> int:
    """How many of the placements from number ``at`` on, whose first holds, are jobs that hold as it does; at least 1.

    ``placed``: keys that were placed before.
    """
    first = placements[at]
    if len(first.parts) != 1 or first.alone or not is_simple(limits, spec):
        return 1
    part = first.parts[0]
    if not part.slots or part.reserved or part.gpus or part.binds:
        return 1
    most = min(ledger.host(part.host).free, limits.left(spec)[0]) // part.slots
    if spec.group:
        most = min(most, ledger.group_left(spec.group))
    if index_of(first.key):
        most, is_like = _elements(ledger, first, most)
    else:
        is_like = _separate(ledger.cluster, first)
    seen: set[int] = set()
    for other in placements[at : at + most]:
        if other.key in seen or other.key in placed or not is_like(other.key):
            break
        if other.parts != first.parts or other.spec != first.spec or other.way != first.way or other.alone:
            break
        seen.add(other.key)
    return max(1, len(seen))


def _elements(ledger: Ledger, first: Placement, most: int) -> tuple[int, Callable[[int], bool]]:
    """(How many may start at most, whether a key is one) of untouched elements of the same array."""
    cluster = ledger.cluster
    array = cluster.arrays.rows.get(job_of(first.key))
    if array is None or first.key in cluster.jobs.rows:
        return 0, lambda _: False
    if array.limit:
        most = min(most, array.limit - ledger.array_running(array.job))
    number, startable = array.job, array.startable
    return most, lambda key: job_of(key) == number and key not in cluster.jobs.rows and index_of(key) in startable


def _separate(cluster: Cluster, first: Placement) -> Callable[[int], bool]:
    """Whether a key is of a separate job of the same class of which nothing is known but that it was submitted."""
    rows = cluster.jobs.rows
    assert isinstance(rows, JobRows)
    number = rows[first.key].spec
    return lambda key: rows.submitted(key) is not None and rows[key].spec == number


def is_simple(limits: Limits, spec: Spec) -> bool:
    """Whether jobs of this spec compete for slots alone."""
    conf = limits.ledger.cluster.conf
    special = spec.gpu is not None or spec.exclusive or spec.roles or conf.limits or limits.ledger.cluster.reservations.rows
    return not special and not limits.has_host_limits(spec)

"""Which queries are short: those that look at few jobs and read little of the store; and which are plain lists of many jobs.

The others get a process of their own.
"""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Caller, Query
from lavad.core.lang.job_names import ArrayError, parse_job_id

FEW = 1000
"""Jobs and elements; a thousand lines of bjobs -l take about a quarter of a second."""
RECORDS_OF_HISTORY = frozenset({"array", "chart", "health", "use"})
OF_HISTORY = frozenset({"bacct", "badmin", "bhist", "bjdep", "bjdepinfo", "bjgroup", "lsacct", "report", "status"})
OF_JOBS = frozenset({"bjobs", "stats", "bread", "bstatus"})
PLAIN = frozenset({"J", "P", "UF", "X", "app", "g", "json", "l", "m", "noheader", "o", "p", "q", "r", "s", "u", "w", "W"})
"""Options of bjobs that show no finished jobs; of these u may show other users' jobs."""
ROWS = frozenset({"G", "J", "P", "app", "g", "m", "noheader", "q", "r", "u", "w"})
"""Options of bjobs that leave it at a line for each live job, made of what is in memory."""
FEW_PLACES = 100
"""Classes of waiting jobs, times hosts: lava why tries the scheduler on all, over and over, which takes up to 2 ms for each."""
MOST_ROWS = 100_000
"""Jobs and elements in a list. What it is of is settled in one go, about 0.6 us for each that is not in columns, and is in memory
until the list has been read."""


def is_short(cluster: Cluster, query: Query, caller: Caller) -> bool:
    """Whether the query can be answered at once, between two commits."""
    if query.command in OF_HISTORY:
        return False
    if query.command == "api":
        return _is_short_record(cluster, query)
    if query.command == "why":
        return len(query.words) == 1 and _is_short_why(cluster)
    if query.command not in OF_JOBS:
        return True
    if query.words and "0" not in query.words:
        return len(query.words) <= FEW and sum(_elements(cluster, word) for word in query.words) <= FEW
    if not PLAIN.issuperset(query.options):
        return False
    if "u" in query.options:
        return _live(cluster, FEW) <= FEW
    keys = cluster.by_user.get(caller.user, ())
    return len(keys) <= FEW and sum(_untouched(cluster, key) for key in keys) + len(keys) <= FEW


def is_list(cluster: Cluster, query: Query) -> bool:
    """Whether it is a list with a short line for each live job, which can be rendered piece by piece."""
    return (
        query.command == "bjobs"
        and not query.words
        and ROWS.issuperset(query.options)
        and not cluster.conf.params.lsb_bjobs_format
        and _live(cluster, MOST_ROWS) <= MOST_ROWS
    )


def _live(cluster: Cluster, most: int) -> int:
    """How many live jobs and elements there are; no more than ``most`` arrays are looked at."""
    found, arrays = len(cluster.jobs.rows), cluster.arrays.rows
    return found + (sum(len(array.indices) for array in arrays.values()) if len(arrays) <= most else len(arrays))


def _is_short_record(cluster: Cluster, query: Query) -> bool:
    """A page of jobs reads the store where it has finished jobs, and looks at all live ones."""
    what = query.words[0] if query.words else ""
    if what == "why":
        return _is_short_why(cluster)
    if what != "jobs":
        return what not in RECORDS_OF_HISTORY
    state = query.options.get("state")
    return state in ("live", "running", "waiting") and len(cluster.jobs.rows) <= 20 * FEW


def _is_short_why(cluster: Cluster) -> bool:
    return len(cluster.jobs.rows) <= FEW and len(cluster.pending) * len(cluster.hosts.rows) <= FEW_PLACES


def _elements(cluster: Cluster, word: str) -> int:
    """How many jobs or elements an id names; of a finished array nobody knows without reading it."""
    try:
        job, indices = parse_job_id(word)
    except ArrayError:
        return 1
    if indices is not None:
        return len(indices)
    if job in cluster.jobs.rows:
        return 1
    return len(cluster.elements.get(job, ())) + _untouched(cluster, job) if job in cluster.arrays.rows else FEW // 10


def _untouched(cluster: Cluster, key: int) -> int:
    array = cluster.arrays.rows.get(key)
    return 0 if array is None else len(array.indices)

"""Selection of the live jobs that a command names: by id or by filters, as in LSF.

Without an id, filters select the matching job that was submitted last; id 0 selects all that match. An id that was assigned but
is not live is a finished job.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.groups import read_path
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Refused, Select
from lavad.core.lang.bounds import MAX_IDS
from lavad.core.lang.ids import job_of, key_of, show
from lavad.core.lang.job_names import MAX_KEYS, ArrayError, parse_job_id, parse_job_ids, pattern
from lavad.core.lang.ranges import EMPTY, Ranges
from lavad.core.lang.states import SUSPENDED, WAITING, JobState
from lavad.core.site.rights import is_admin, why_not_control
from lavad.core.site.service_classes import ServiceClasses

_STATES = {"run": frozenset({JobState.RUN, JobState.UNKWN}), "pend": WAITING | {JobState.WAIT}, "susp": SUSPENDED}
MOST_LINES = 100
"""Elements of index lists in one request that are answered one by one, as LSF does; longer lists get one answer each."""
FINISHED = "Job has already finished"
UNKNOWN = "No matching job found"


class Target(msgspec.Struct):
    """One answer line of a command: live jobs or elements, untouched elements of an array, or why there are none."""

    shown: str
    keys: list[int] = []
    array: int = 0
    untouched: Ranges = EMPTY
    why: str = ""


Found = int | Target
"""A target; the key alone of a plain job."""


def select(cluster: Cluster, wanted: Select, caller: Caller) -> list[Found]:
    """The targets in the order given, each once however often it is named; raises Refused for a malformed id."""
    _check_filters(cluster, wanted)
    if not wanted.ids:
        taken = list(matching(cluster, wanted, caller)) if has_filter(wanted) else []
        return taken if wanted.state else taken[-1:]
    if len(wanted.ids) > MAX_IDS:
        raise Refused(f"More than {MAX_IDS} job IDs in one request")
    targets: list[Found] = []
    named, lines, every = 0, MOST_LINES, False
    try:
        for text, job, elements in parse_job_ids(wanted.ids):
            found: list[Found]
            if job == 0:
                found = _all_matching(cluster, wanted, caller)
            elif elements is not None and 1 < len(elements) <= lines:
                found = [find_target(cluster, job, Ranges.span(at, at), f"{job}[{at}]") for at in elements]
                lines -= len(elements)
            else:
                found = [find_target(cluster, job, elements, text)]
            if every or job:  # what there is may be selected, once, however much it is
                named += sum(1 if isinstance(one, int) else len(one.keys) for one in found)
            every = every or not job
            if named > MAX_KEYS:
                raise Refused(f"More than {MAX_KEYS} jobs and elements in one request")
            targets += found
    except ArrayError as error:
        raise Refused(str(error)) from None
    return targets if len(wanted.ids) == 1 else _once(targets)


def _once(targets: list[Found]) -> list[Found]:
    """The first of each that is shown by the same name."""
    named: dict[str, Found] = {}
    for one in targets:
        named.setdefault(str(one) if isinstance(one, int) else one.shown, one)
    return list(named.values())


def has_filter(wanted: Select) -> bool:
    """Whether anything but an id selects jobs."""
    own = wanted.name, wanted.queue, wanted.group, wanted.app, wanted.service_class
    return any((*own, wanted.user, wanted.host, wanted.state))


def _check_filters(cluster: Cluster, wanted: Select) -> None:
    """Raises Refused where one names what there is not."""
    if wanted.state not in ("", *_STATES):
        raise Refused(f"{wanted.state}: Bad job state: run, pend or susp")
    if wanted.queue and wanted.queue not in cluster.queue_conf:
        raise Refused(f"{wanted.queue}: No such queue")
    if wanted.service_class and all(one.name != wanted.service_class for one in cluster.conf.service_classes):
        raise Refused(f"{wanted.service_class}: No such service class")
    if wanted.host and wanted.host not in cluster.hosts.rows and wanted.host not in cluster.conf.groups_of_hosts.members:
        raise Refused(f"{wanted.host}: Bad host name, host group name or cluster name")


def _all_matching(cluster: Cluster, wanted: Select, caller: Caller) -> list[Found]:
    """Id 0: started jobs before pending ones, then by queue priority, as in a listing."""
    jobs, arrays = cluster.jobs.rows, cluster.arrays.rows
    urgency: dict[int, int] = {}
    """Spec number to its queue's priority, negative."""

    def place(target: Found) -> tuple[bool, int, float]:
        if isinstance(target, int):
            record: Job | Array = jobs[target]
        else:
            record = arrays[target.array] if target.array else jobs[target.keys[0]]
        if record.spec not in urgency:
            queue = cluster.queue_conf.get(cluster.specs.rows[record.spec].queue)
            urgency[record.spec] = -queue.priority if queue is not None else 0
        started = record.run.started if isinstance(record, Job) and record.run is not None else 0.0
        return not started, urgency[record.spec], started

    return sorted(matching(cluster, wanted, caller), key=place)


def find_target(cluster: Cluster, job: int, elements: Ranges | None, text: str) -> Target:
    """The target that an id argument names."""
    array = cluster.arrays.rows.get(job)
    if elements is None:
        if array is not None:
            return _whole(cluster, array)
        if job in cluster.jobs.rows:
            return Target(shown=str(job), keys=[job])
        return Target(shown=str(job), why=FINISHED if 0 < job < cluster.next_job else UNKNOWN)
    if array is None:  # a job that lives has no elements then
        return Target(shown=text, why=FINISHED if 0 < job < cluster.next_job and job not in cluster.jobs.rows else UNKNOWN)
    if not array.indices.intersect(elements):
        return Target(shown=text, why=UNKNOWN)
    touched = cluster.elements.get(job, {})
    keys = [key for index in array.indices.intersect(elements) if (key := key_of(job, index)) in touched]
    untouched = array.pending.union(array.held).intersect(elements)
    why = "" if keys or untouched else FINISHED
    return Target(shown=text, keys=keys, array=job, untouched=untouched, why=why)


def get_target(cluster: Cluster, text: str, caller: Caller) -> Target:
    """The live target of a command that takes one job; raises Refused with LSF's words."""
    try:
        job, elements = parse_job_id(text)
    except ArrayError as error:
        raise Refused(str(error)) from None
    target = find_target(cluster, job, elements, text)
    if target.why:
        raise Refused(target.why if target.why == FINISHED else f"{text}: {UNKNOWN}")
    record = cluster.arrays.rows[target.array] if target.array else cluster.jobs.rows[target.keys[0]]
    spec = cluster.specs.rows[record.spec]
    if why := why_not_control(cluster.conf, spec, caller):
        raise Refused(why)
    return target


def _whole(cluster: Cluster, array: Array) -> Target:
    keys = list(cluster.elements.get(array.job, ()))
    return Target(shown=str(array.job), keys=keys, array=array.job, untouched=array.pending.union(array.held))


def owners(cluster: Cluster, wanted: Select, caller: Caller) -> Container[str] | None:
    """Whose jobs are meant: without a user the caller's own. None: everyone's, as ``all`` says to an administrator only."""
    conf = cluster.conf
    if wanted.user in ("", "all"):
        return None if wanted.user and is_admin(conf, caller) else frozenset((caller.user,))
    return conf.groups_of_users.users(wanted.user) if wanted.user in conf.groups_of_users.members else frozenset((wanted.user,))


def matching(cluster: Cluster, wanted: Select, caller: Caller) -> Iterable[Found]:
    """Live jobs that pass the filters, oldest first; an array whose elements all match is one target.

    Raises Refused where a filter names what there is not.
    """
    _check_filters(cluster, wanted)
    whose = owners(cluster, wanted, caller)
    users = [user for user in cluster.by_user if whose is None or user in whose]
    keys = [key for user in users for key in cluster.by_user[user]]
    if has_filter(replace(wanted, user="")):
        return _passing(cluster, wanted, sorted(keys, key=lambda key: (job_of(key), key)))
    arrays = cluster.arrays.rows
    return [_whole(cluster, arrays[key]) if key in arrays else key for key in sorted(keys) if not key >> 32]


def _passing(cluster: Cluster, wanted: Select, keys: list[int]) -> Iterator[Found]:
    arrays, specs, filters = cluster.arrays.rows, cluster.specs.rows, Filters(cluster, wanted)
    for key in keys:
        array = arrays.get(key)
        if array is not None:
            if not wanted.host and filters.take(array, specs[array.spec]):
                yield from _of_array(cluster, array, wanted)
            continue
        job = cluster.jobs.rows[key]
        if not filters.take(job, specs[job.spec]):
            continue
        if not key >> 32:
            yield key
        elif wanted.host or not filters.take(arrays[job_of(key)], specs[arrays[job_of(key)].spec]):
            yield Target(shown=show(key), keys=[key])
        # otherwise the array as a whole is a target


def _of_array(cluster: Cluster, array: Array, wanted: Select) -> Iterator[Target]:
    """The array as a whole, or the elements of it that a name's indices and a state select."""
    target = _whole(cluster, array)
    indices = pattern(wanted.name).indices if wanted.name else None
    if indices is not None:
        target = find_target(cluster, array.job, indices, f"{array.job}{wanted.name[wanted.name.index('[') :]}")
    if wanted.state:
        states = _STATES[wanted.state]
        target.keys = [key for key in target.keys if cluster.jobs.rows[key].state in states]
        if wanted.state != "pend":
            target.untouched = EMPTY
    if target.keys or target.untouched or not wanted.state:
        yield target


class Filters:
    """The filters of a command but the user's: whether they take a job or an array, which may have ended."""

    def __init__(self, cluster: Cluster, wanted: Select) -> None:
        self._wanted = wanted
        self._group = read_path(wanted.group) or wanted.group
        self._names = pattern(wanted.name) if wanted.name else None
        self._classes = ServiceClasses(cluster.conf)
        self._hosts = frozenset(cluster.conf.groups_of_hosts.hosts(wanted.host)) if wanted.host else frozenset()

    def take(self, job: Job | Array, spec: Spec) -> bool:
        wanted, names = self._wanted, self._names
        if wanted.queue and spec.queue != wanted.queue:
            return False
        if wanted.group and spec.group != self._group:
            return False
        if wanted.app and spec.app != wanted.app:
            return False
        if wanted.service_class and self._classes.of(spec) != wanted.service_class:
            return False
        named = names is None or (names.fits(job.key, job.name) if isinstance(job, Job) else names.fits_array(job.name))
        if not named:
            return False
        if wanted.state and isinstance(job, Job) and job.state not in _STATES[wanted.state]:
            return False
        return not wanted.host or (isinstance(job, Job) and self._runs_there(job))

    def _runs_there(self, job: Job) -> bool:
        return job.run is not None and ("all" in self._hosts or any(part.host in self._hosts for part in job.run.parts))

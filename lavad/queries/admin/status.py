"""lava status: what is wrong with the cluster, in words, and what to do about each.

Rule: nothing is said of what is well. Jobs are counted; a few are named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lavad.core.decide.control.faulty_hosts import Cause
from lavad.core.events.records import stands
from lavad.core.job.depend import NEVER
from lavad.core.lang.ids import key_of
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.states import HostState
from lavad.core.site.host import LEAVING, Host
from lavad.core.site.pend_reason import NEVER_ENOUGH_SLOTS, NEVER_GPU, NEVER_RESOURCE, PendReason, text
from lavad.queries.explain import table
from lavad.queries.facts import hostfacts
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, err, out

_R = PendReason
_NEVER = frozenset((*NEVER_ENOUGH_SLOTS, *NEVER_GPU, _R.NO_SUITABLE_HOST, _R.NEVER_CPUS, _R.QUE_GONE, _R.HOST_NO_RSVID))
_NAMED = 6
"""Hosts, GPUs and jobs that a line names."""
_LEAST_TMP = 0.02
"""The share of /tmp below which a host's disk is full."""
_BY_ITSELF = {
    LEAVING: "nothing: it leaves by itself",
    Cause.HEALTH.value: "see to it there; it opens by itself once that is over",
    Cause.STARTS.value: "see to it there; it opens by itself for a trial, or at once by badmin hopen",
}
"""What to do about hosts that are closed for these causes."""
_NOTICES = (
    (
        "master's store",
        "see to the database: the log of lavad has what it said. Jobs run on; commands that change something wait",
    ),
    ("configuration files", "badmin ckconfig on the master's host names every error; mend them there, then badmin reconfig"),
    ("lsb.events", "make room in LSB_SHAREDIR, or let lavad write there; what is missing is written then"),
    ("is revoked", "lava certs --hosts HOST makes another; copy it to that host: docs/operations.md"),
    ("former certificates", "put files there that fit together, which lavad's account may read: docs/operations.md"),
    ("certificate", "lava certs --renew, and copy it to its host: docs/operations.md"),
    ("is not in lsf.cluster", "stop lava-agent there, or list the host and run badmin reconfig"),
    ("could not be recorded", "read the log of lavad; tell whoever maintains lava"),
    ("refused", "compare versions and certificates of that host with the master's"),
    ("does not answer", "see to its server, or its disk; a lavad that cannot write there waits, too"),
    (" left", "remove or move files there; LAVA_HISTORY_DAYS and LAVA_OUTPUT_DAYS keep less"),
)


class Problem(NamedTuple):
    """What is wrong, and what to do."""

    what: str
    do: str


def show(request: Request) -> Iterator[Shown]:
    request.options()
    found = list(problems(request))
    for problem in found:
        yield out(f"{problem.what}\n  What to do: {problem.do}\n")
    if not found:
        yield err("nothing is wrong with the cluster")


def problems(request: Request) -> Iterator[Problem]:
    """All of them, the gravest first."""
    yield from _hosts(request)
    yield from _notices(request)
    yield from _disks(request)
    yield from _gpus(request)
    yield from _queues(request)
    yield from _jobs(request)


def _named(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")


def _of(some: Sequence[object], rows: Sequence[Host]) -> str:
    return f"{len(some)} of {len(rows)} hosts {'is' if len(some) == 1 else 'are'}"


def _rows(request: Request) -> list[Host]:
    names = [name for name in hostfacts.all_hosts(request.view) if hostfacts.conf_of(request.view, name).server]
    return [hostfacts.host_of(request.view, name) for name in names]


def _hosts(request: Request) -> Iterator[Problem]:
    rows = _rows(request)
    silent = [row for row in rows if row.state is not HostState.OK]
    never = [row.name for row in silent if not row.joined]
    gone = [f"{row.name} (since {formats.full_time(row.since)})" for row in silent if row.joined]
    if rows and len(silent) == len(rows):
        yield Problem(
            "No host is available: nothing can start", "start lava-agent on the hosts; their logs say what keeps them away"
        )
    if gone:
        yield Problem(
            f"{_of(gone, rows)} out of reach: {_named(gone)}",
            "is the host up and its network well? systemctl status lava-agent there, and its log",
        )
    if never:
        yield Problem(
            f"{len(never)} of {len(rows)} configured hosts have never joined: {_named(never)}",
            "start lava-agent there, or take them out of lsf.cluster and lsb.hosts",
        )
    closed: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row.closed:
            closed[row.closed_by, row.comment, row.closed_for].append(row.name)
    for (by, comment, cause), names in closed.items():
        why = f": {comment}" if comment else ""
        do = f"badmin hopen {names[0] if len(names) == 1 else 'HOST ...'} once that is over"
        yield Problem(f"{_of(names, rows)} closed by {by or 'an administrator'}: {_named(names)}{why}", _BY_ITSELF.get(cause, do))


def _notices(request: Request) -> Iterator[Problem]:
    for notice in request.view.soft.notices:
        do = next((do for word, do in _NOTICES if word in notice), "the log of lavad says more")
        name = notice.startswith("lsb.")
        yield Problem(notice if name else f"{notice[0].upper()}{notice[1:]}", do)
    at, seconds = request.cluster.extended
    if seconds and at + seconds > request.now:
        yield Problem(
            f"Leases of hosts are extended until {formats.full_time(at + seconds)}: jobs of a lost host start elsewhere later",
            "nothing: it ends by itself",
        )


def _disks(request: Request) -> Iterator[Problem]:
    """/tmp of hosts; with no room there jobs fail and agents cannot keep their ends."""
    full = []
    for row in _rows(request):
        free = request.view.soft.load.get(row.name, {}).get("tmp")
        if free is not None and row.state is HostState.OK and free < _LEAST_TMP * row.facts.max_tmp:
            full.append(f"{row.name} ({formats.mb_text(free)} left)")
    if full:
        yield Problem(
            f"/tmp is full on {_named(full)}", "remove files there; jobs may set rusage[tmp=MB] so that they go elsewhere"
        )


def _gpus(request: Request) -> Iterator[Problem]:
    for host, error in request.view.soft.gpu_errors.items():
        if error:
            yield Problem(f"The GPU driver of {host} does not answer: {error}", "nvidia-smi there; jobs without GPUs go on")
    for row in _rows(request):
        numbers = {gpu.uuid: gpu.index for gpu in row.facts.gpus}
        closed = [f"{numbers.get(gpu.uuid, gpu.uuid)} ({gpu.why or f'by {gpu.by}'})" for gpu in row.closed_gpus]
        if closed:
            yield Problem(f"GPUs of {row.name} are closed: {_named(closed)}", f"badmin gpuopen {row.name}:ID once they are well")


def _queues(request: Request) -> Iterator[Problem]:
    cluster = request.cluster
    well = [row.name for row in _rows(request) if row.state is HostState.OK and not row.closed]
    for queue in cluster.conf.queues:
        state = cluster.queue_state(queue.name)
        if not state.open or not state.active:
            how = " and ".join(word for word, is_so in (("closed", not state.open), ("inactive", not state.active)) if is_so)
            why = f": {state.comment}" if state.comment else ""
            yield Problem(
                f"Queue {queue.name} is {how}{f', by {state.by}' if state.by else ''}{why}",
                f"badmin {'qopen' if not state.open else 'qact'} {queue.name} once that is over",
            )
        if well and not cluster.conf.groups_of_hosts.preferences(queue.hosts, well):
            yield Problem(
                f"Queue {queue.name} has no host that is well: HOSTS = {' '.join(queue.hosts)}",
                "see to these hosts, or change HOSTS in lsb.queues and run badmin reconfig",
            )


def _jobs(request: Request) -> Iterator[Problem]:
    """Waiting jobs that can never start, by reason."""
    view, cluster = request.view, request.cluster
    why = {spec: known.reasons[0][0] for spec, known in view.soft.why.items() if known.reasons and _is_never(known.reasons[0][0])}
    stuck: defaultdict[int, list[str]] = defaultdict(list)
    counts: defaultdict[int, int] = defaultdict(int)
    for job in cluster.jobs.rows.values():
        if job.run is None and (code := int(_R.JOB_DEP_INVALID) if job.blocked == NEVER else why.get(job.spec, 0)):
            counts[code] += 1
            stuck[code].append(show_key(job.key))
    for array in cluster.arrays.rows.values():
        if not array.pending:
            continue
        never = stands(array, next(iter(array.pending))) == NEVER
        if code := int(_R.JOB_DEP_INVALID) if never else why.get(array.spec, 0):
            counts[code] += len(array.pending)
            stuck[code].append(show_key(key_of(array.job, 0)))
    for code, count in sorted(counts.items(), key=lambda pair: -pair[1]):
        entry = table.of_reason(code)
        jobs = f"{count} waiting job{'s' if count > 1 else ''}"
        do = table.advice(entry, "JOB") if entry is not None else ""
        words = re.sub(r"^There are no suitable hosts for the job: ", "", text(code, cluster.conf))
        yield Problem(f"{jobs} can never start ({words}): {_named(stuck[code])}", f"lava why JOB; {do}" if do else "lava why JOB")


def _is_never(code: int) -> bool:
    return code in _NEVER or code in NEVER_RESOURCE

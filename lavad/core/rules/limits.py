"""Limits of queues, users, hosts and lsb.resources on started slots and jobs, GPUs and what is reserved.

The scheduler and ``accept_plan`` ask them.

Rule: each check gives the reason, 0 for none; the most restrictive limit decides (LSF). What is held for waiting jobs counts
as what jobs have. The slots of a job that was suspended by preemption do not count against limits of lsb.resources on hosts
(LSF).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from config.model.cluster import Limit
from config.model.queue import QueueConfig
from lavad.core.cluster.gpu_book import gpu_amounts
from lavad.core.cluster.limit_sums import Sum, amounts_of, why_not_sum
from lavad.core.job.job import Part, Placed
from lavad.core.job.spec import Spec
from lavad.core.rules.gpu_counts import slots_with_gpus
from lavad.core.rules.gpus import per_task
from lavad.core.rules.ledger import UNLIMITED, Ledger
from lavad.core.site.limit_book import Consumer, LimitBook
from lavad.core.site.pend_reason import LIMIT_JOBS, LIMIT_RESOURCE, LIMIT_SLOTS, PendReason

Room = tuple[int, int]
"""(slots left, the pend reason if they are too few)."""
_NONE: Room = (UNLIMITED, 0)


class Limits:
    """All limits against one ledger."""

    def __init__(self, book: LimitBook, ledger: Ledger) -> None:
        self.book = book
        self.ledger = ledger
        self.policies: list[Callable[[Spec], Room]] = []
        """What policies leave to jobs of a spec; the scheduler alone sets them, so that ``accept_plan`` does not hold them."""
        self.given_back = 0
        """Grows whenever something no longer counts."""
        self._counted = -1
        self._held = 0
        """How many of those that the ledger only counts are in the sums."""
        self._own: frozenset[str] | None = None
        self._preempting = False
        self._on_host: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        """(host, queue, "") and (host, "", user) to slots."""
        self._sums: defaultdict[tuple[int, Consumer, str], Sum] = defaultdict(Sum)
        """(limit, whose, host or "") to what counts."""

    @contextmanager
    def of_started(self, hosts: Iterable[str]) -> Iterator[None]:
        """Meanwhile slots are asked for a job that has some on these hosts: where it counts as a job, it is no job more."""
        self._own = frozenset(hosts)
        try:
            yield
        finally:
            self._own = None

    @contextmanager
    def preempting(self) -> Iterator[None]:
        """Meanwhile a job is placed for which others are preempted: suspended ones leave it room by limits on jobs (LSF)."""
        self._preempting = True
        try:
            yield
        finally:
            self._preempting = False

    @property
    def for_started_jobs(self) -> bool:
        """Whether more slots are asked for a job that has some."""
        return self._own is not None

    @property
    def for_new_jobs(self) -> bool:
        """Whether slots are asked for a job that has none, and for which no other is preempted."""
        return self._own is None and not self._preempting

    def _jobs(self, sum_: Sum) -> int:
        """The jobs that count."""
        return sum_.jobs - sum_.preempted * self._preempting

    def _has_job(self, at: int, limit: Limit, host: str, own: frozenset[str] | None) -> bool:
        """Whether a job that has hosts counts against a limit already; ``host``: against that of this host."""
        if not own:
            return False
        return host in own if limit.per_host and host else any(self.book.on_host(at, name) for name in own)

    def left(self, spec: Spec, jobs: bool = True) -> Room:
        """Slots that jobs of this spec may still take in the cluster, with the reason of the tightest limit.

        ``jobs`` False: without the limits of lsb.resources on the number of jobs, which jobs that others are preempted for
        may pass.
        """
        room = _NONE
        queue = self.book.queues.get(spec.queue)
        if queue is not None:
            room = self._queue_left(queue, spec)
        for section, users in self.book.of_job(spec):
            if section.max_jobs is not None:
                sharers = self.book.sharers(section, users, self.ledger.all_users) or (spec.user,)
                left = section.max_jobs - sum(map(self.ledger.user_slots, sharers))
                room = min(room, (left, _user_reason(bool(users), left)))
        for at, limit, _ in self.book.applying(spec):
            if not limit.hosts and not limit.per_host:
                room = min(room, self._limit_left(at, limit, spec, "", jobs))
        by_slots = spec.gpu is not None and (self._own is None or per_task(spec.gpu))  # else a host of the job needs no more
        if by_slots and (self.book.on_gpus or (queue is not None and queue.gpu_capability is not None)):
            gpus, reason = self.gpus_left(spec)
            room = min(room, (slots_with_gpus(spec, gpus), reason))
        for policy in self.policies:
            room = min(room, policy(spec))
        if spec.group:
            more = self.ledger.group_left(spec.group)
            if more < UNLIMITED and self._own is None:
                room = min(room, (max(0, more) * max(spec.slots, spec.max_slots), PendReason.JGROUP_LIMIT))
        return room

    def _queue_left(self, queue: QueueConfig, spec: Spec) -> Room:
        room = _NONE
        parallel = spec.slots > 1
        if queue.qjob_limit is not None:
            left = queue.qjob_limit - self.ledger.queue_slots(queue.name)
            room = (left, PendReason.QUE_PJOB_LIMIT if parallel and left > 0 else PendReason.QUE_JOB_LIMIT)
        if queue.capability is not None:
            left = queue.capability - self.ledger.queue_slots(queue.name)
            room = min(room, (left, PendReason.QUE_PJOB_LIMIT if parallel and left > 0 else PendReason.QUE_JOB_LIMIT))
        if queue.ujob_limit is not None:
            left = queue.ujob_limit - self.ledger.pair_slots(queue.name, spec.user)
            reason = PendReason.QUE_USR_PJLIMIT if parallel and left > 0 else PendReason.QUE_USR_JLIMIT
            room = min(room, (left, reason))
        return room

    def has_host_limits(self, spec: Spec) -> bool:
        """Whether any limit on single hosts applies to jobs of this spec."""
        return self.book.has_host_limits(spec)

    def host_left(self, spec: Spec, host: str) -> Room:
        """Slots that jobs of this spec may still take on one host, with the reason of the tightest limit."""
        self._count()
        room = _NONE
        ncpus = self.ledger.host(host).ncpus
        queue = self.book.queues.get(spec.queue)
        if queue is not None and (queue.hjob_limit is not None or queue.pjob_limit is not None):
            used = self._on_host[host, spec.queue, ""]
            if queue.hjob_limit is not None:
                room = (queue.hjob_limit - used, PendReason.QUE_HOST_JLIMIT)
            if queue.pjob_limit is not None:
                room = min(room, (_per_cpu(queue.pjob_limit, ncpus) - used, PendReason.QUE_PROC_JLIMIT))
        conf = self.book.hosts.get(host)
        if conf is not None and conf.user_job_limit is not None:
            room = min(room, (conf.user_job_limit - self._on_host[host, "", spec.user], PendReason.HOST_USR_JLIMIT))
        room = min(room, self._processor_left(spec, host, ncpus))
        for at, limit, _ in self.book.applying(spec):
            if (limit.hosts or limit.per_host) and self.book.on_host(at, host):
                room = min(room, self._limit_left(at, limit, spec, host))
        return room

    def amounts_left(self, spec: Spec, host: str) -> Iterator[tuple[str, float, int]]:
        """(resource, amount that jobs of this spec may still reserve on one host, reason): limits of lsb.resources on hosts."""
        for at, limit, _ in self.book.applying(spec):
            caps = (limit.hosts or limit.per_host) and (limit.resources or limit.mem is not None)
            if caps and self.book.on_host(at, host):
                where = host if limit.per_host else ""
                taken = self._sum(at, spec, where).amounts
                for name, cap in self.caps(limit, where).items():
                    yield name, cap - taken[name], LIMIT_RESOURCE + at

    def gpus_left(self, spec: Spec, host: str = "") -> Room:
        """GPUs that jobs of this spec may still take: by limits on this host, or ("") by those of no host and CAPABILITY."""
        room = _NONE
        queue = self.book.queues.get(spec.queue)
        if not host and queue is not None and queue.gpu_capability is not None:
            room = (queue.gpu_capability - self.ledger.queue_gpus(spec.queue), PendReason.QUE_GPU_CAPABILITY)
        each = dict(gpu_amounts(spec, 1))
        for at in self.book.on_gpus:
            limit = self.book.conf.limits[at]
            if bool(limit.hosts or limit.per_host) != bool(host) or not self.book.applies(at, spec):
                continue
            if host and not self.book.on_host(at, host):
                continue
            taken = self._sum(at, spec, host if limit.per_host else "").amounts
            for name, cap in limit.resources:
                if each.get(name):
                    room = min(room, (int((cap - taken[name] + 1e-6) // each[name]), LIMIT_RESOURCE + at))
        return room

    def _processor_left(self, spec: Spec, host: str, ncpus: int) -> Room:
        """JL/P of lsb.users: slots on a host for each of its processors."""
        room = _NONE
        for section, users in self.book.of_job(spec):
            if section.slots_per_processor is not None:
                sharers = self.book.sharers(section, users, self.ledger.all_users) or (spec.user,)
                used = sum(self._on_host[host, "", user] for user in sharers)
                reason = PendReason.UGRP_PROC_JLIMIT if users else PendReason.USER_PROC_JLIMIT
                room = min(room, (_per_cpu(section.slots_per_processor, ncpus) - used, reason))
        return room

    def why_not(self, spec: Spec, parts: tuple[Placed, ...]) -> int:
        """Why these parts would break a limit; 0: they would not. The ledger checks the slots of each host."""
        left, reason = self.left(spec)
        if sum(part.slots for part in parts) > left:
            return reason
        if asked := sum(len(part.gpus) for part in parts):
            gpus, reason = self.gpus_left(spec)
            if asked > gpus:
                return reason
        if self.has_host_limits(spec):
            for part in parts:
                left, reason = self.host_left(spec, part.host)
                if part.slots > left:
                    return reason
        for at, limit, _ in self.book.applying(spec):
            reason = self._why_not_limit(at, limit, spec, parts)
            if reason:
                return reason
        return 0

    def _why_not_limit(self, at: int, limit: Limit, spec: Spec, parts: tuple[Placed, ...]) -> int:
        """Limits of lsb.resources that no check of a single host sees: over several hosts, on jobs, on reserved resources."""
        here = [part for part in parts if self.book.on_host(at, part.host)]
        for host in [part.host for part in here] if limit.per_host else [""]:
            mine = [part for part in here if not host or part.host == host]
            caps = self.caps(limit, host)
            starts = not self._has_job(at, limit, host, self._own)
            sum_ = self._sum(at, spec, host)
            reason = why_not_sum(at, limit, caps, sum_, spec, mine, self._jobs(sum_) + 1 if starts else 0)
            if reason:
                return reason
        return 0

    def _limit_left(self, at: int, limit: Limit, spec: Spec, host: str, jobs: bool = True) -> Room:
        sum_ = self._sum(at, spec, host if limit.per_host else "")
        most = self.most_slots(limit, host)
        room = _NONE if most is None else (most - sum_.slots, LIMIT_SLOTS + at)
        if jobs and limit.jobs is not None and self._jobs(sum_) >= limit.jobs and not self._has_job(at, limit, host, self._own):
            room = min(room, (0, LIMIT_JOBS + at))
        return room

    def _sum(self, at: int, spec: Spec, host: str) -> Sum:
        self._count()
        return self._sums[at, self.book.counted(at, spec), host]

    def most_slots(self, limit: Limit, host: str) -> int | None:
        """The most slots; ``host``: where this is of each host. None: it is no limit on slots."""
        if limit.slots_per_processor is None or not host:
            return limit.slots
        here = _per_cpu(limit.slots_per_processor, self.ledger.host(host).ncpus)
        return here if limit.slots is None else min(here, limit.slots)

    def caps(self, limit: Limit, host: str) -> dict[str, float]:
        """The most of each resource, in MB where it is a size; ``host``: where this is of each host."""
        caps = dict(limit.resources)
        if limit.mem is not None:
            caps["mem"] = limit.mem
        for name in limit.percent if host else ():
            has = self.ledger.capacity(host, name)
            caps[name] = UNLIMITED if has is None else caps[name] / 100 * has
        return caps

    def used(self) -> dict[tuple[int, Consumer, str], Sum]:
        """(place of a limit in lsb.resources, whose, host or "") to what counts against it."""
        self._count()
        return dict(self._sums)

    def over_hosts(self, spec: Spec) -> list[tuple[int, int, dict[str, float]]]:
        """(limit, slots left, amounts left) of each limit that parts of a job on several hosts may break only together."""
        found = []
        for at in self.book.over_hosts:
            if self.book.applies(at, spec):
                limit, sum_ = self.book.conf.limits[at], self._sum(at, spec, "")
                slots = UNLIMITED if limit.slots is None else limit.slots - sum_.slots
                found.append((at, slots, {name: cap - sum_.amounts[name] for name, cap in self.caps(limit, "").items()}))
        return found

    def why_not_resumed(self, spec: Spec, parts: Sequence[Part]) -> int:
        """Why a job that was suspended by preemption may not have its slots again; 0: it may."""
        for at, limit in enumerate(self.book.conf.limits):
            for host in self._counted_on(at, limit, spec, parts):
                sum_ = self._sum(at, spec, host)
                if limit.jobs is not None and sum_.jobs - sum_.preempted >= limit.jobs:
                    return LIMIT_JOBS + at
            if not (limit.hosts or limit.per_host) or not self.book.applies(at, spec):
                continue
            here = [part for part in parts if self.book.on_host(at, part.host)]
            together = 0 if limit.per_host else sum(part.slots for part in here)
            for part in here:
                left, reason = self._limit_left(at, limit, spec, part.host, jobs=False)
                if (together or part.slots) > left:
                    return reason
        return 0

    def shift(self, spec: Spec, parts: Sequence[Placed | Part], sign: int, jobs: int = 1) -> None:
        """As ``Ledger.shift``, of what jobs have on hosts; ``jobs`` 0: of a part of what a job has."""
        self.given_back += sign < 0
        if self.book.counts_parts:
            self._count()
            self._add(spec, parts, sign, jobs, self._own)

    def hold(self, spec: Spec, parts: Sequence[Placed | Part], sign: int) -> None:
        """As ``shift``, of what is reserved for a job that does not fit now."""
        self.shift(spec, parts, sign)

    def shift_slots(self, spec: Spec, parts: Sequence[Placed | Part], sign: int) -> None:
        """As ``Ledger.shift_slots``, of a job that is preempted by suspension (-1) or goes on (1)."""
        self.given_back += sign < 0
        if self.book.conf.limits:
            self._count()
            self.keep_slots(spec, parts, sign)
            for at, limit in enumerate(self.book.conf.limits):
                for host in self._counted_on(at, limit, spec, parts):
                    self._sum(at, spec, host).preempted -= sign

    def keep_slots(self, spec: Spec, parts: Sequence[Placed | Part], sign: int = 1) -> None:
        """Slots that a job has given up by suspension count against limits on hosts again (1), or not (-1)."""
        for at, limit, _ in self.book.applying(spec):
            if limit.hosts or limit.per_host:
                for part in parts:
                    if self.book.on_host(at, part.host):
                        self._sum(at, spec, part.host if limit.per_host else "").slots += sign * part.slots

    def _counted_on(self, at: int, limit: Limit, spec: Spec, parts: Iterable[Placed | Part]) -> Iterable[str]:
        """The hosts on which a limit counts these parts as a job, "" for all together; none: it does not."""
        here = (part.host for part in parts if self.book.on_host(at, part.host)) if self.book.applies(at, spec) else ()
        return dict.fromkeys(host if limit.per_host else "" for host in here)

    def _count(self) -> None:
        """Count all that has started or is held once, and afterwards only what the ledger took since."""
        if self._counted < 0:
            self._counted = 0
            cluster = self.ledger.cluster
            for key in cluster.started:
                job = cluster.jobs.rows[key]
                if job.run is not None:
                    spec = cluster.specs.rows[job.spec]
                    self._add(spec, job.run.parts)
                    if job.preempted_for and not job.preempted_for_good:
                        self.shift_slots(spec, job.run.parts, -1)
            for key in cluster.promised:
                job = cluster.jobs.rows[key]
                self._add(cluster.specs.rows[job.spec], job.promised)
        while self._counted < len(self.ledger.placed):
            spec, placed = self.ledger.placed[self._counted]
            own = self.ledger.grown.get(self._counted)
            self._counted += 1
            self._add(spec, placed, own=own)
        while self._held < len(self.ledger.counted):
            spec, placed = self.ledger.counted[self._held]
            self._held += 1
            self._add(spec, placed)

    def _add(
        self, spec: Spec, parts: Sequence[Placed | Part], sign: int = 1, jobs: int = 1, own: frozenset[str] | None = None
    ) -> None:
        """``own``: hosts that the job has already."""
        for part in parts:
            self._on_host[part.host, spec.queue, ""] += sign * part.slots
            self._on_host[part.host, "", spec.user] += sign * part.slots
        for at, limit, whose in self.book.applying(spec):
            seen: set[str] = set()
            for part in parts:
                if not self.book.on_host(at, part.host):
                    continue
                where = part.host if limit.per_host else ""
                sum_ = self._sums[at, whose, where]
                sum_.slots += sign * part.slots
                if where not in seen and not self._has_job(at, limit, where, own):
                    sum_.jobs += sign * jobs
                seen.add(where)
                for name, amount in amounts_of(spec, part):
                    sum_.amounts[name] += sign * amount


def _user_reason(is_group: bool, left: int) -> int:
    if is_group:
        return PendReason.UGRP_PJOB_LIMIT if left > 0 else PendReason.UGRP_JOB_LIMIT
    return PendReason.USER_PJOB_LIMIT if left > 0 else PendReason.USER_JOB_LIMIT


def _per_cpu(limit: float, ncpus: int) -> int:
    return int(limit * ncpus + 1e-9)

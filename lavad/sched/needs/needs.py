"""What a class of equal jobs needs of hosts: its own and its queue's resource requirements, read once.

Rule: a ``Need`` depends on the spec and the configuration only, never on load, time or use.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from config.model.queue import QueueConfig
from config.model.values import LOAD_INDICES
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.resreq.text import PACKING, Affinity, Cu, Expr, ResReq, ResReqError, Rusage, Span, names_in, parse
from lavad.core.lang.resreq.ways import Term, Way, ways
from lavad.core.lang.rusage_decay import RusageDecay
from lavad.core.rules.gpus import per_task
from lavad.core.site.conf import Conf
from lavad.core.site.pend_reason import JOB_RUSAGE, QUE_RUSAGE, about

INCREASING = frozenset(("r15s", "r1m", "r15m", "ut", "pg", "io", "ls"))
_TYPE_NAMES = frozenset(("type", "model", "hname"))
_IGNORED = frozenset(("slots", "ngpus", "ngpus_physical", "ngpus_shared", "ngpus_excl_p", "ncpus"))


_NO_SPAN = Span()


@dataclass(frozen=True, slots=True)
class Shape:
    """What a job requires of its hosts together, beyond span[hosts=1] and span[ptile=n]; most classes nothing."""

    same: tuple[str, ...] = ()
    cu: Cu | None = None
    span: Span = _NO_SPAN
    """``block``, ``stripe``, or ``ptile`` that is not one number for all hosts."""
    per_job: tuple[tuple[str, float], ...] = ()
    """Reserved once a job, on its first host."""

    @property
    def excl(self) -> bool:
        """cu[excl]: whether no other job may use its compute units."""
        return self.cu is not None and self.cu.excl


PLAIN = Shape()


class Need(msgspec.Struct, eq=False):
    """A class's needs; ``per_host``, ``per_slot`` and ``shared`` (reserved once a job) are (resource, amount; memory in MB).

    ``slots`` and ``most``: minimum and maximum of slots. ``ways``: itself and the needs of the other alternatives of its
    requirement (`{..}||{..}`), none if there is only one; ``terms``: those of a compound requirement (`2*{..}+4*{..}`).
    """

    number: int
    spec: Spec
    queue: QueueConfig
    way: int = 0
    delay: int = 0
    slots: int = 1
    most: int = 1
    one_slot: bool = True
    one_host: bool = False
    ptile: int = 0
    shape: Shape = PLAIN
    per_host: tuple[tuple[str, float], ...] = ()
    per_slot: tuple[tuple[str, float], ...] = ()
    shared: tuple[tuple[str, float], ...] = ()
    decays: tuple[RusageDecay, ...] = ()
    affinity: Affinity | None = None
    gpu: GpuReq | None = None
    gpu_per_task: bool = False
    terms: tuple[Need, ...] = ()
    ways: tuple[Need, ...] = ()
    queue_rusage: frozenset[str] = frozenset()
    accept_gap: int = 0
    """Seconds between two starts on one host (JOB_ACCEPT_INTERVAL)."""
    order: tuple[tuple[str, bool], ...] = ()
    order_key: tuple[tuple[tuple[str, bool], ...], tuple[str, ...]] = ((), ())
    packing: str = ""
    """binpack, spread; ``gpus`` for a job with GPUs that has no order[]; "": by rank."""
    first: bool = False
    queue_select: Expr | None = None
    job_select: Expr | None = None
    type_free: bool = False
    eligible_key: tuple[object, ...] = ()
    depends_on_load: bool = False
    """Whether it depends on load which hosts the class may use at all."""
    is_simple: bool = False
    """Whether it asks for one slot, and an amount of at most one resource, on any host."""

    @classmethod
    def of(cls, number: int, spec: Spec, queue: QueueConfig, conf: Conf, way: Way | None = None) -> Need:
        """What a spec in a queue needs, by one of the alternatives of its requirement (the first)."""
        self = cls(number, spec, queue)
        way = way or ways_of(spec, queue)[0]
        outer, own, both = _sections(way)
        self.delay = way.delay
        span = both.span or _NO_SPAN
        self._read_size(spec, span)
        self._read_rusage(both.rusage[0] if both.rusage else Rusage(), conf)
        self._read_shape(both, span)
        self.affinity = both.affinity
        self.gpu = spec.gpu
        self.gpu_per_task = spec.gpu is not None and per_task(spec.gpu)
        self.terms = _terms(self, way, conf) if way.compound else ()
        asked = {use.name for req in own.rusage for use in req.uses}
        self.queue_rusage = frozenset(use.name for req in outer.rusage for use in req.uses if use.name not in asked)
        interval = queue.job_accept_interval
        self.accept_gap = (conf.params.job_accept_interval if interval is None else interval) * conf.params.mbd_sleep_time
        self._read_order(both, conf)
        self._read_selection(outer.select, own.select, both.select, conf)
        special = self.gpu or self.affinity or spec.exclusive or spec.roles or self.shared or self.accept_gap or self.first
        amounts = len(self.per_host) + len(self.per_slot)
        self.is_simple = self.one_slot and self.is_plain and not special and amounts <= 1
        return self

    @property
    def least_on_host(self) -> int:
        """Slots that a host must have to be of any use to the class."""
        return self.slots if self.one_host else 1

    @property
    def whole_on_host(self) -> int:
        """Slots on a host with which it has all that span[] wants there."""
        return self.slots if self.one_host else min(self.ptile or 1, self.slots)

    def _read_size(self, spec: Spec, span: Span) -> None:
        self.slots = spec.slots
        self.most = max(spec.slots, spec.max_slots)
        self.one_slot = self.most == 1
        self.one_host = span.kind == "hosts" and span.n == 1
        self.ptile = span.n if span.kind == "ptile" and not span.by_type else 0

    def _read_order(self, both: ResReq, conf: Conf) -> None:
        self.order = both.order
        self.packing = next((name for name, _ in both.order if name in PACKING), "")
        if self.gpu is not None and not both.order and dict(conf.params.lava_pack_weights).get("gpus", 1.0):
            self.packing = "gpus"
        self.order_key = (self.order, _preferred(self.spec, self.queue))
        self.first = any(word.endswith("!") for word in self.preferred)

    def _read_selection(self, queue: Expr | None, job: Expr | None, both: Expr | None, conf: Conf) -> None:
        spec = self.spec
        job = _with_memory(job, spec)
        self.queue_select, self.job_select = queue, job
        self.type_free = bool(spec.hosts or spec.reservation) or _names_a_type(conf, both)
        local = "" if self.type_free and "local" not in spec.resreq else spec.from_host
        self.eligible_key = (self.queue.name, spec.hosts, queue, job, local, spec.reservation)
        reads = frozenset((*names_in(queue), *names_in(job)))
        thresholds = bool(self.queue.thresholds.sched) or any(host.thresholds.sched for host in conf.hosts)
        self.depends_on_load = bool(reads & dynamic_names(conf)) or thresholds

    def _read_rusage(self, rusage: Rusage, conf: Conf) -> None:
        shared = {resource.name for resource in conf.resources if resource.locations}
        host: list[tuple[str, float]] = []
        slot: list[tuple[str, float]] = []
        job: list[tuple[str, float]] = []
        once: list[tuple[str, float]] = []
        decays: list[RusageDecay] = []
        increasing = increasing_names(conf)
        for use in rusage.uses:
            if use.name in _IGNORED or use.amount <= 0 or use.name in increasing:
                continue
            if use.duration:
                decays.append(RusageDecay(use.name, use.amount, use.duration, bool(use.decay)))
            per = conf.params.rusage_per(use.name, use.per)
            if per == "task":
                slot.append((use.name, use.amount))
            elif use.name in shared and per != "host":
                job.append((use.name, use.amount))
            elif per == "job" and not (self.one_slot or self.one_host):
                once.append((use.name, use.amount))
            else:
                host.append((use.name, use.amount))
        self.per_host, self.per_slot, self.shared = tuple(host), tuple(slot), tuple(job)
        self.decays = tuple(decays)
        if once:
            self.shape = Shape(per_job=tuple(once))

    def _read_shape(self, both: ResReq, span: Span) -> None:
        special = span.kind in ("block", "stripe") or (span.kind == "ptile" and not self.ptile)
        if both.cu is not None or ((both.same or special) and not self.one_slot):
            self.shape = Shape(both.same, both.cu, span if special else _NO_SPAN, self.shape.per_job)

    def further(self, own: bool) -> Need:
        """The need of more slots of a job that has some; ``own``: on a host of it, where it has what it takes once a host."""
        need = copy(self)
        need.shared = ()
        if own:
            need.per_host = ()
            need.gpu = self.gpu if self.gpu_per_task else None
        return need

    @property
    def preferred(self) -> tuple[str, ...]:
        """The host list whose preferences (`host+n`, `host!`) count: that of ``-m``, else the queue's HOSTS if it has any."""
        return self.order_key[1]

    @property
    def reserves(self) -> tuple[str, ...]:
        """The resources that it reserves, GPUs left out."""
        places = (self.per_host, self.per_slot, self.shared, self.shape.per_job)
        return tuple(name for place in places for name, _ in place)

    @property
    def host_limit(self) -> int:
        """HOSTLIMIT_PER_JOB; 0: none."""
        return self.queue.hostlimit_per_job or 0

    @property
    def is_plain(self) -> bool:
        """Whether slots and amounts on each host are all that it asks for."""
        return self.shape is PLAIN and not self.terms and not self.ways

    def rusage_reason(self, name: str, names: tuple[str, ...]) -> int:
        """The pend reason where this resource is short: by the queue's requirement or by the job's."""
        return about(QUE_RUSAGE if name in self.queue_rusage else JOB_RUSAGE, name, names)


def _sections(way: Way) -> tuple[ResReq, ResReq, ResReq]:
    """The queue's requirement, the job's and both merged; of a compound one the queue's holds for each term."""
    term = way.terms[0]
    return (term.outer, ResReq(), term.outer) if way.compound else (term.outer, term.own, term.both)


def _preferred(spec: Spec, queue: QueueConfig) -> tuple[str, ...]:
    marked = any("+" in word or word.endswith("!") for word in queue.hosts)
    return spec.hosts or (queue.hosts if marked else ())


def read_need(cluster: Cluster, number: int) -> Need | None:
    """The need of a class by the first alternative of its requirement; None: its queue is gone."""
    spec = cluster.specs.rows[number]
    queue = cluster.queue_conf.get(spec.queue)
    if queue is None:
        return None
    every = ways_of(spec, queue)
    if len(every) == 1 and not every[0].delay:
        return Need.of(number, spec, queue, cluster.conf, every[0])
    found = tuple(Need.of(number, spec, queue, cluster.conf, way) for way in every)
    for at, need in enumerate(found):
        need.way = at
    found[0].ways = found
    return found[0]


def ways_of(spec: Spec, queue: QueueConfig) -> tuple[Way, ...]:
    """The alternatives of the requirement of a job in this queue."""
    if not spec.resreq and not queue.res_req:
        return _NO_WAYS
    return ways(parsed(queue.res_req), parsed(spec.resreq))


_NO_WAYS = ways(ResReq(), ResReq())


def _terms(need: Need, way: Way, conf: Conf) -> tuple[Need, ...]:
    """The needs of the terms of a compound requirement; a term without a number is for the slots that the others leave."""
    fixed, rest = sum(term.count for term in way.terms), not all(term.count for term in way.terms)
    if not (fixed < need.slots if rest else fixed == need.slots == need.most):
        return ()  # the queue's requirement was another when the job was submitted
    found = []
    for term in way.terms:
        least, most = term.count or need.slots - fixed, term.count or need.most - fixed
        spec = replace(need.spec, slots=least, max_slots=most)
        found.append(Need.of(need.number, spec, need.queue, conf, Way((Term(0, term.outer, term.own, term.both),))))
    return tuple(found)


def increasing_names(conf: Conf) -> frozenset[str]:
    """Load indices that are worse when higher."""
    loads = (resource for resource in conf.resources if resource.interval and not resource.consumable)
    return INCREASING | {resource.name for resource in loads if resource.increasing}


def dynamic_names(conf: Conf) -> frozenset[str]:
    """Resources whose values change while a host is up."""
    dynamic = (resource.name for resource in conf.resources if resource.interval or resource.locations)
    return frozenset((*LOAD_INDICES, *dynamic, "slots", "status"))


def parsed(text: str) -> ResReq:
    """A requirement that does not parse any more asks for nothing: it was checked at submission."""
    if not text:
        return ResReq()
    try:
        return parse(text)
    except ResReqError:
        return ResReq()


def _with_memory(select: Expr | None, spec: Spec) -> Expr | None:
    """With -M auto the job goes where its limit fits into the memory of the host."""
    if not spec.memory_auto or spec.limits.mem is None:
        return select
    mb = spec.limits.mem // 1024
    fits: Expr = (">=", ("name", "maxmem"), ("num", float(mb), str(mb)))
    return fits if select is None else ("and", select, fits)


def _names_a_type(conf: Conf, select: Expr | None) -> bool:
    """LSF's default ``type==local`` does not hold where a type, model, host, boolean or string resource is named."""
    named = frozenset(names_in(select))
    return bool(named & _TYPE_NAMES) or any(r.name in named and r.kind != "numeric" for r in conf.resources)

"""The smallest changes of a waiting job that would start it now.

Rule: each change was tried with the whole scheduler (``trial.starts``), and bmod and bswitch would make it; of a number, the
largest that starts is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Protocol

import msgspec
from msgspec.structs import replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec
from lavad.core.lang.gpureq import GpuReq
from lavad.sched.ask.estimate import tries
from lavad.sched.ask.trial import Moment, starts
from lavad.sched.needs.needs import Need
from lavad.sched.state.scheduler_cache import SchedulerCache

_SECTIONS = ("select", "span", "same", "cu", "affinity")
_LINEAR = 64
_TILE = re.compile(r"\bspan\s*\[\s*ptile\s*=\s*[0-9]+\s*\]")
"""What ``-nnodes`` makes, too."""
_MEM = re.compile(r"\bmem\s*=\s*[0-9.]+\s*[KMGTPE]?B?", re.IGNORECASE)


class Change(msgspec.Struct, frozen=True, order=True):
    """``size``: the fraction of a request that is given up; 1.0: a whole option."""

    size: float
    text: str
    spec: Spec = msgspec.field(default_factory=lambda: Spec(user="", queue=""))


Starts = Callable[[Spec], bool]


class Permits(Protocol):
    """What the job's owner may make of it."""

    def in_queue(self, spec: Spec, queue: str) -> Spec | None: ...

    def takes(self, spec: Spec) -> bool: ...


def find_changes(moment: Moment, key: int, permits: Permits) -> list[Change]:
    """Single changes that would start a waiting job now, the smallest first; if there are none, pairs of changes."""
    cluster = moment.cluster
    spec = cluster.spec_of(key)
    left, cache = tries(cluster), SchedulerCache()

    def would_start(other: Spec) -> bool:
        nonlocal left
        if not permits.takes(other):
            return False
        left -= 1
        return left >= 0 and starts(moment, key, other, cache)

    single = list(_numbers(cluster, spec, would_start))
    options = [*_other_queues(cluster, spec, permits), *_other_options(spec, moment.now)]
    single += [change for change in options if would_start(change.spec)]
    found = single or list(_pairs(cluster, options, would_start))
    return sorted(found, key=lambda change: (change.size, change.text))


def _pairs(cluster: Cluster, options: list[Change], would_start: Starts) -> Iterator[Change]:
    for option in options:
        for change in _numbers(cluster, option.spec, would_start):
            yield Change(option.size + change.size, f"{option.text}, and {change.text}", change.spec)


def _numbers(cluster: Cluster, spec: Spec, would_start: Starts) -> Iterator[Change]:
    """Fewer slots, less memory, fewer GPUs."""
    queue = cluster.queue_conf.get(spec.queue)
    least = queue.tasklimit.minimum if queue is not None else 1
    slots = _largest(least, spec.slots - 1, lambda n: would_start(replace(spec, slots=n, max_slots=n)))
    if slots is not None:
        fewer = replace(spec, slots=slots, max_slots=slots)
        yield Change(1 - slots / spec.slots, f"{slots} slot{'s' * (slots > 1)} instead of {spec.slots} (-n {slots})", fewer)
    yield from _memory(cluster, spec, would_start)
    gpu = spec.gpu
    if gpu is not None:
        wanted = gpu.num or 1
        num = _largest(1, wanted - 1, lambda n: would_start(replace(spec, gpu=replace(gpu, num=n))))
        if num is not None:
            text = f"{num} GPU{'s' * (num > 1)} instead of {wanted} (-gpu num={num})"
            yield Change(1 - num / wanted, text, replace(spec, gpu=replace(gpu, num=num)))
        elif would_start(replace(spec, gpu=None)):
            yield Change(1.0, "no GPU", replace(spec, gpu=None))


def _memory(cluster: Cluster, spec: Spec, would_start: Starts) -> Iterator[Change]:
    queue = cluster.queue_conf.get(spec.queue)
    if queue is None or len(_MEM.findall(spec.resreq)) != 1:
        return
    need = Need.of(0, spec, queue, cluster.conf)
    asked = dict((*need.per_host, *need.per_slot)).get("mem", 0.0)

    def with_mem(amount: int) -> Spec:
        return replace(spec, resreq=_MEM.sub(f"mem={amount}", spec.resreq))

    most = int(asked) - (asked == int(asked))
    amount = _largest(1, most, lambda n: would_start(with_mem(n)))
    if amount is not None:
        unit = "" if cluster.conf.params.resreq_unit_mb == 1.0 else "MB"
        text = f'mem={amount}{unit} instead of {asked:g}{unit} (-R "rusage[mem={amount}{unit}]")'
        yield Change(1 - amount / asked, text, with_mem(amount))


def _largest(low: int, high: int, test: Callable[[int], bool]) -> int | None:
    """The largest number from low to high that passes ``test``, None: none does. Large ranges are searched by bisection."""
    if high - low < _LINEAR:
        return next((number for number in range(high, low - 1, -1) if test(number)), None)
    if not test(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if test(middle) else (low, middle - 1)
    return low


def _other_queues(cluster: Cluster, spec: Spec, permits: Permits) -> Iterator[Change]:
    for queue in cluster.conf.queues:
        other = permits.in_queue(spec, queue.name) if queue.name != spec.queue else None
        if other is not None:
            yield Change(1.0, f"queue {queue.name} (bswitch {queue.name})", other)


def _other_options(spec: Spec, now: float) -> Iterator[Change]:
    """The same job without one of its options."""
    plain = (
        (bool(spec.hosts), "any host (no -m)", replace(spec, hosts=())),
        (spec.exclusive, "sharing its hosts (no -x)", replace(spec, exclusive=False)),
        (spec.begin > now, "no start time (no -b)", replace(spec, begin=0.0)),
        (spec.deadline > 0, "no deadline (no -t)", replace(spec, deadline=0.0)),
        (bool(spec.service_class), "no service class (bmod -slan)", replace(spec, service_class="")),
        (bool(spec.dependency), "no dependency (no -w)", replace(spec, dependency="")),
    )
    yield from (Change(1.0, text, other) for has, text, other in plain if has)
    if spec.gpu is not None:
        yield from _other_gpus(spec, spec.gpu)
    for section in _SECTIONS:
        shorter = re.sub(rf"\b{section}\s*\[[^\[\]]*\]", "", spec.resreq).strip()
        if shorter != spec.resreq:
            also = " or -nnodes" if section == "span" and _TILE.search(spec.resreq) else ""
            yield Change(1.0, f"no {section}[]{also}", replace(spec, resreq=shorter))
    if spec.limits.run:
        for part in (2, 4, 8, 16):
            seconds = spec.limits.run // part // 60 * 60
            if seconds:
                shorter_run = replace(spec, limits=replace(spec.limits, run=seconds))
                yield Change(1 - 1 / part, f"a run limit of {seconds // 60} minutes (-W {seconds // 60})", shorter_run)


def _other_gpus(spec: Spec, gpu: GpuReq) -> Iterator[Change]:
    """GPUs that are shared, or of another kind."""
    if gpu.j_exclusive and gpu.mode != "exclusive_process":
        yield Change(1.0, "sharing its GPUs (-gpu j_exclusive=no)", replace(spec, gpu=replace(gpu, j_exclusive=False)))
    for name, field in (("gmodel", "gmodel"), ("gmem", "gmem_mb"), ("glink", "glink"), ("gtile", "gtile"), ("mig", "mig")):
        if getattr(gpu, field) is not None:
            yield Change(1.0, f"GPUs without {name} (-gpu)", replace(spec, gpu=replace(gpu, **{field: None})))

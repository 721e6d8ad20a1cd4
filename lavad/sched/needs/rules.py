"""Which jobs the configuration lets be preempted or suspended: PREEMPTION=PREEMPTIVE[low+1 …] PREEMPTABLE[high …], windows, load.

Rule: only a queue of higher priority preempts, whatever the lists say, so that two queues never preempt each other.
"""

from __future__ import annotations

from config.model.queue import QueueConfig
from lavad.core.lang.resreq.sections import Order
from lavad.core.rules.ownership import owned
from lavad.core.site.conf import Conf

Victims = dict[str, tuple[tuple[str, int], ...]]


class Rules:
    """``preempts`` as of ``preemptable``; ``has_guarantees``: whether queues own slots or GPUs; ``stops``: whether windows or
    load may suspend jobs; ``host_stops``: those of hosts; ``stop_loads``: the stop thresholds of all queues; ``stop_conds``:
    whether a queue has a condition in their place; ``shortest_soft``: seconds of the shortest soft run limit,
    0 for none; ``order``: DEFAULT_RESREQ_ORDER."""

    __slots__ = ("has_guarantees", "host_stops", "order", "preempts", "shortest_soft", "stop_conds", "stop_loads", "stops")

    def __init__(self, conf: Conf) -> None:
        self.preempts = preemptable(conf)
        self.has_guarantees = bool(owned(conf))
        extensions = [one.extendable_runlimit for one in (*conf.queues, *conf.apps) if one.extendable_runlimit is not None]
        self.shortest_soft = min((one.base for one in extensions), default=0)
        words = conf.params.default_resreq_order.split(":")
        self.order: Order = tuple((word.removeprefix("-"), word.startswith("-")) for word in words)
        stops = [queue.thresholds.stop or queue.stop_cond for queue in conf.queues]
        stops += [host.thresholds.stop or host.run_window for host in conf.hosts]
        self.host_stops = any(stops)
        self.stop_loads = tuple(dict.fromkeys(one for queue in conf.queues for one in queue.thresholds.stop))
        self.stop_conds = any(queue.stop_cond for queue in conf.queues)
        self.stops = self.host_stops or any(queue.run_window for queue in conf.queues)


def preemptable(conf: Conf) -> Victims:
    """Queue to the queues (with LSF's preference, the highest first) whose jobs its jobs may preempt."""
    found: Victims = {}
    for queue in conf.queues:
        lower = [other for other in conf.queues if other.priority < queue.priority]
        levels = {other.name: level for other in lower if (level := _level(queue, other)) is not None}
        if levels:
            found[queue.name] = tuple(sorted(levels.items(), key=lambda item: -item[1]))
    return found


def _level(queue: QueueConfig, other: QueueConfig) -> int | None:
    """The preference for victims of another queue; None: jobs of this queue may not preempt them."""
    if queue.preemption.preemptive:
        named = dict(queue.preemption.preempts)
        if not named or other.name in named:
            return named.get(other.name) or 0
    by = dict(other.preemption.preempted_by)
    return 0 if other.preemption.preemptable and (not by or queue.name in by) else None

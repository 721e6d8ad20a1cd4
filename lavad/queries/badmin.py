"""badmin hist, mbdhist, hhist, qhist: what administrators did, and what became of the master, hosts and queues."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core import events as ev
from lavad.core.asks import Refused
from lavad.queries import bhist, hostfacts, times
from lavad.queries.request import Request, Shown, out
from lavad.queries.sentences import cluster_sentence
from lavad.queries.wrap import wrap

_KINDS: dict[str, tuple[type[ev.Event], ...]] = {
    "mbdhist": (ev.MasterStarted,),
    "hhist": (ev.HostSwitched, ev.HostUp, ev.HostDown),
    "qhist": (ev.QueueSwitched,),
}
_KINDS["hist"] = tuple(kind for kinds in _KINDS.values() for kind in kinds)


def show(request: Request) -> Iterator[Shown]:
    """A paragraph an event; names choose hosts or queues."""
    options = request.options("", "t")
    what, *names = request.words or ["hist"]
    kinds = _KINDS.get(what)
    if kinds is None:
        raise Refused(f"Invalid command <{what[:80]}>")
    begin, end = bhist.window(request, options.text("t")) if "t" in options else (0.0, request.now + 1)
    for _, event in request.view.reader.events_between(begin, end):
        if isinstance(event, kinds) and (not names or _name(event) in names):
            yield out(wrap(f"{times.full(event.at)}: {_sentence(request, event)}"))


def _name(event: ev.Event) -> str:
    if isinstance(event, ev.QueueSwitched):
        return event.queue
    return event.host if isinstance(event, (ev.HostSwitched, ev.HostUp, ev.HostDown)) else ""


def _sentence(request: Request, event: ev.Event) -> str:
    if isinstance(event, ev.MasterStarted):
        hosts, queues = len(hostfacts.all_hosts(request.view)), len(request.cluster.conf.queues)
        return (
            f"lavad started on host <{event.host}>; cluster name <{request.view.name}>, {hosts} server hosts, "
            f"{queues} queues."
        )
    return cluster_sentence(event)

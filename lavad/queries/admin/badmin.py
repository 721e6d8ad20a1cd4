"""badmin hist, mbdhist, hhist, qhist: what administrators did to hosts and queues, and when the master started."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core import events as ev
from lavad.core.lang.asks import Refused
from lavad.queries.admin import badmin_daemons, badmin_status
from lavad.queries.facts import hostfacts, lsf_log
from lavad.queries.facts.site_sentences import cluster_sentence
from lavad.queries.frame import times
from lavad.queries.frame.request import Request, Shown, err, out
from lavad.queries.frame.wrap import wrap
from lavad.queries.jobs import bhist

_KINDS: dict[str, tuple[type[ev.Event], ...]] = {
    "mbdhist": (ev.MasterStarted,),
    "hhist": (ev.HostSwitched, ev.HostLeft),
    "qhist": (ev.QueueSwitched,),
}
_KINDS["hist"] = tuple(kind for kinds in _KINDS.values() for kind in kinds)


def show(request: Request) -> Iterator[Shown]:
    """A paragraph an event; names choose hosts or queues."""
    options = request.options()
    request, _ = lsf_log.opened(request, options)
    what, *names = request.words or ["hist"]
    if what in badmin_daemons.COMMANDS:
        yield from badmin_daemons.show(request, what, names)
        return
    if what == "showstatus":
        yield from badmin_status.show(request)
        return
    kinds = _KINDS.get(what)
    if kinds is None:
        raise Refused(f"Invalid command <{what[:80]}>")
    begin, end = bhist.window(request, options.text("t")) if "t" in options else (0.0, request.now + 1)
    found = False
    for _, event in request.view.reader.site_events([ev.kind_of(kind) for kind in kinds], begin, end):
        if not names or _name(event) in names:
            found = True
            yield out(wrap(f"{times.full(event.at)}: {_sentence(request, event)}"))
    if not found:
        yield err("No matching event found")


def _name(event: ev.Event) -> str:
    if isinstance(event, ev.QueueSwitched):
        return event.queue
    return event.host if isinstance(event, ev.HostSwitched | ev.HostLeft) else ""


def _sentence(request: Request, event: ev.Event) -> str:
    if isinstance(event, ev.MasterStarted):
        hosts, queues = len(hostfacts.all_hosts(request.view)), len(request.cluster.conf.queues)
        return (
            f"mbatchd started on host <{event.host}>; cluster name <{request.view.name}>, {hosts} server hosts, {queues} queues."
        )
    return cluster_sentence(event)

"""``render``: a query becomes pieces of text for the caller's stdout and stderr, and an exit status.

Rule: commands are generators of small strings; here they are joined to pieces of about 64 KB, the first one going out
at once, so that a list of 100,000 jobs streams and costs little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lavad.core.lang.asks import Caller, Query, Refused
from lavad.queries.admin import badmin, lsacct, status
from lavad.queries.frame.request import Request, Shown
from lavad.queries.frame.terminal import shown
from lavad.queries.frame.view import View
from lavad.queries.hosts import bhosts, brsvs, bslots, clusters, lshosts, lsinfo, lsload
from lavad.queries.jobs import bacct, bhist, bjdepinfo, bjgroup, bjobs, bread, report, stats, time_left, why
from lavad.queries.queues import bapp, blimits, bparams, bqueues, bsla, busers, groups
from lavad.queries.records import show as records

PIECE = 64 * 1024
RENDERERS: dict[str, Callable[[Request], Iterator[Shown]]] = {
    "bjobs": bjobs.show,
    "bhist": bhist.show,
    "bhosts": bhosts.show,
    "bqueues": bqueues.show,
    "bhpart": groups.show_partitions,
    "why": why.show,
    "time-left": time_left.show,
    "report": report.show,
    "stats": stats.show,
    "status": status.show,
    "api": records.show,
    "busers": busers.show,
    "bparams": bparams.show,
    "bugroup": groups.show_users,
    "bmgroup": groups.show_hosts,
    "bjgroup": bjgroup.show,
    "bjdepinfo": bjdepinfo.show,
    "bjdep": bjdepinfo.show_conditions,
    "lsid": clusters.show_lsid,
    "lsload": lsload.show,
    "lsplace": lsload.show_places,
    "lshosts": lshosts.show,
    "lsinfo": lsinfo.show,
    "lsclusters": clusters.show_lsclusters,
    "badmin": badmin.show,
    "bacct": bacct.show,
    "blimits": blimits.show,
    "bapp": bapp.show,
    "bread": bread.show,
    "bstatus": bread.show_status,
    "bslots": bslots.show,
    "bclusters": clusters.show_bclusters,
    "bsla": bsla.show_bsla,
    "lsacct": lsacct.show,
    "brsvs": brsvs.show,
    "bresources": blimits.show_resources,
}


def render(view: View, query: Query, caller: Caller, now: float) -> Iterator[tuple[str, str]]:
    """Pieces ("out", text) and ("err", text) in order, and ("exit", status) at the end."""
    command = RENDERERS.get(query.command)
    if command is None:
        yield "err", f"{query.command}: no such query\n"
        yield "exit", "255"
        return
    if "V" in query.options:
        yield "err", f"{clusters.product(view)}\n"
        yield "exit", "0"
        return
    yield from _joined(command(Request(view, query, caller, now)), view.checked)


def _piece(kind: str, held: list[str]) -> tuple[str, str]:
    text = "".join(held)
    return ("out", text) if kind == "as_is" else (kind, shown(text))


def _joined(found: Iterator[Shown], checked: Callable[[], None] | None) -> Iterator[tuple[str, str]]:
    status = 0
    kind = "out"
    held: list[str] = []
    size = 0
    limit = 1
    try:
        for what, text in found:
            if what == "exit":
                status = max(status, int(text))
                continue
            if checked is not None:
                checked()
            if what != kind and held:
                yield _piece(kind, held)
                held, size = [], 0
            kind = what
            held.append(text)
            size += len(text)
            if size >= limit:
                yield _piece(kind, held)
                held, size, limit = [], 0, PIECE
    except Refused as refused:
        status = refused.exit_code
        if held:
            yield _piece(kind, held)
            held = []
        yield "err", shown(f"{refused.text}\n")
    if held:
        yield _piece(kind, held)
    yield "exit", str(status)

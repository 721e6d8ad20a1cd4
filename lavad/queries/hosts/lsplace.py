"""lsplace: names of hosts where tasks would be well placed now, the least loaded first, each as often as it has CPUs at most."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.core.lang.states import HostState
from lavad.queries.facts import hostfacts
from lavad.queries.frame.options import Options
from lavad.queries.frame.request import Request, Shown, out

FEW = "lsplace: Not enough host(s) currently eligible"


def show(request: Request) -> Iterator[Shown]:
    """One line of names, a blank behind each."""
    options = request.options()
    least, most = _count(options, "n"), _count(options, "w")
    chosen = place(request, options.text("R"), request.words, "L" in options)
    wanted = 0 if 0 in (least, most) else max(least or 1, most or 1)
    if not chosen or len(chosen) < (least or 1):
        raise Refused(FEW, 1)
    yield out("".join(f"{name} " for name in (chosen[:wanted] if wanted else chosen)) + "\n")


def _count(options: Options, name: str) -> int | None:
    text = options.text(name)
    if name not in options:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Refused(f"lsplace: bad number of hosts: {text[:80]}")
    return int(text)


def place(request: Request, resreq: str, words: list[str], packed: bool) -> list[str]:
    """Names in the order of placement; ``packed``: as few hosts as possible."""
    view = request.view
    known = hostfacts.all_hosts(view)
    for name in words:
        if name not in known:
            raise Refused(f"main: invalid hostname {name}")
    names = [name for name in (words or known) if _is_eligible(request, name)]
    if resreq:
        names = hostfacts.fitting(request, names, resreq)
    names.sort(key=lambda name: _weight(request, name))
    cpus = {name: max(1, hostfacts.host_of(view, name).facts.ncpus) for name in names}
    if packed:
        return [name for name in sorted(names, key=lambda name: -cpus[name]) for _ in range(cpus[name])]
    turns = range(max(cpus.values(), default=0))
    return [name for turn in turns for name in names if turn < cpus[name]]


def _is_eligible(request: Request, name: str) -> bool:
    view = request.view
    host = hostfacts.host_of(view, name)
    ready = host.state is HostState.OK and not host.closed and hostfacts.conf_of(view, name).server
    return ready and not hostfacts.busy_indices(view, name)


def _weight(request: Request, name: str) -> tuple[float, float, str]:
    load = request.view.soft.load.get(name, {})
    return round(load.get("r15s", 0.0), 1), round(load.get("pg", 0.0), 1), name

"""bhosts: hosts with their status and job slots."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.queries.facts import hostfacts
from lavad.queries.facts.hostfacts import Slots
from lavad.queries.frame import columns
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.hosts import bhosts_custom, bhosts_long, bhosts_shared, hostgpus

HEADER = "HOST_NAME          STATUS       JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV \n"
WIDE = "HOST_NAME          STATUS          JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV \n"


def show(request: Request) -> Iterator[Shown]:
    """The pieces of a listing."""
    options = request.options()
    if options.any("s", "sl"):
        yield from bhosts_shared.show(request, "noheader" not in options)
        return
    names = hostfacts.named(request, request.words)
    if "R" in options:
        names = hostfacts.fitting(request, names, options.text("R"))
    if not request.words:
        names = [name for name in names if hostfacts.conf_of(request.view, name).server]
    if "x" in options:
        # no EXIT_RATE is watched, so no host is an exception
        yield out("There is no exceptional host found\n")
        return
    if not names:
        raise Refused("No suitable host found" if "R" in options else "No host found")
    given = options.find("o") or options.text("LSB_BHOSTS_FORMAT") or request.view.lsf.get("LSB_BHOSTS_FORMAT", "")
    if "e" in options:
        yield out("No host is exported to another cluster\n")
    elif options.any("gpu") and "l" in options:
        yield out("\n".join(hostgpus.show_long(request, name) for name in names))
    elif "gpu" in options:
        yield from hostgpus.show_use(request, names, "noheader" not in options)
    elif "l" in options:
        yield from bhosts_long.show(request, names, "aff" in options)
    elif options.any("o", "json") or (given and "w" not in options):
        custom = columns.parse("bhosts", given or bhosts_custom.DEFAULT, bhosts_custom.FIELDS)
        if "json" in options and "noheader" in options:
            raise Refused("bhosts: -json and -noheader cannot be used together")
        yield from bhosts_custom.show(request, names, custom, "json" in options, "noheader" not in options)
    else:
        yield from _rows(request, names, "w" in options, "noheader" not in options)


def limit(value: int | None) -> str:
    """A limit in a column."""
    return "-" if value is None or value < 0 else str(value)


def _rows(request: Request, names: list[str], wide: bool, header: bool) -> Iterator[Shown]:
    view = request.view
    if header:
        yield out(WIDE if wide else HEADER)
    for name in names:
        slots = Slots(view, name)
        state = hostfacts.status(view, name, request.now, slots)
        per_user = limit(hostfacts.conf_of(view, name).user_job_limit)
        lead = f"{name:<18} {state:<15}" if wide else f"{name:<18.18} {state.partition('_')[0]:<12.12}"
        yield out(
            f"{lead} {per_user:>4} {limit(slots.max):>6} {slots.all:>6} {slots.run:>6} {slots.ssusp:>6} "
            f"{slots.ususp:>6} {slots.rsv:>6}\n"
        )

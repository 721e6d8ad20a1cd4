"""bhosts -l: one host at length: status, load with what is reserved, thresholds, the administrator's message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from config.model.values import LOAD_INDICES
from lavad.queries.facts import gpufacts, hostfacts, jobfacts, resources
from lavad.queries.facts.hostfacts import SharedInstance, Slots
from lavad.queries.facts.load import load_text, site_indices, threshold_table
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.view import View

_HEADER = "STATUS           CPUF  JL/U    MAX  NJOBS    RUN  SSUSP  USUSP    RSV DISPATCH_WINDOW\n"
_LOAD = "              r15s   r1m  r15m    ut    pg    io   ls    it   tmp   swp   mem"
_WIDTHS = (7, 6, 6, 6, 6, 6, 5, 6, 6, 6, 6)


def show(request: Request, names: list[str], processors: bool) -> Iterator[Shown]:
    """A record for each host; ``processors``: with its sockets and cores."""
    shared = hostfacts.shared_by_host(request.view)
    for at, name in enumerate(names):
        lead = "\n" if at else ""
        cores = resources.host_affinity(request.view, name) if processors else ""
        yield out(lead + _record(request, name, shared.get(name, ())) + cores)


def _record(request: Request, name: str, shared: Sequence[SharedInstance]) -> str:
    view = request.view
    slots, conf, host = Slots(view, name), hostfacts.conf_of(view, name), hostfacts.host_of(view, name)
    status = hostfacts.status(view, name, request.now, slots)
    row = (
        f"{status:<14} {jobfacts.cpu_factor(view, name):>6.2f} {hostfacts.limit(conf.user_job_limit):>5} "
        f"{hostfacts.limit(slots.max):>6} "
        f"{slots.all:>6} {slots.run:>6} {slots.ssusp:>6} {slots.ususp:>6} {slots.rsv:>6}      "
        f"{conf.dispatch_window or '-'}\n"
    )
    parts = [f"HOST  {name}\n", _HEADER, row, "\n CURRENT LOAD USED FOR SCHEDULING:\n", _load(view, name)]
    parts += [_shared(shared), "\n LOAD THRESHOLD USED FOR SCHEDULING:\n"]
    parts += [threshold_table(view.cluster.conf, conf.thresholds), "\n"]
    parts += [_gpus(view, name)]
    if host.comment:
        parts.append(f'\n ADMIN ACTION COMMENT: "{host.comment}"\n')
    return "".join(parts)


def _load(view: View, name: str) -> str:
    load = view.soft.load.get(name, {})
    use = view.cluster.use.hosts.get(name)
    held = use.reserved if use is not None else {}
    extra = site_indices(view.cluster.conf)
    widths = [max(len(index), 6) + 1 for index in extra]
    lines = [_LOAD + "".join(f" {index:>{w - 1}}" for index, w in zip(extra, widths, strict=True)) + "\n"]
    for title, numbers, missing in ((" Total     ", load, "-"), (" Reserved  ", held, None)):
        cells = [
            f"{_value(index, numbers.get(index), missing):>{width}}" for index, width in zip(LOAD_INDICES, _WIDTHS, strict=True)
        ]
        for index, width in zip(extra, widths, strict=True):
            value = numbers.get(index, 0.0 if missing is None else None)
            cells.append(f" {'-' if value is None else f'{value:.1f}':>{width - 1}}")
        lines.append(formats.joined(title, *cells) + "\n")
    return "".join(lines)


def _value(index: str, value: float | None, missing: str | None) -> str:
    if value is None:
        if missing is not None:
            return missing
        value = 0.0
    return load_text(index, value)


def _shared(found: Sequence[SharedInstance]) -> str:
    """The tables of shared resources that the host may use."""
    if not found:
        return ""
    names = "".join(f" {one.resource:>6}" for one in found)
    total = "".join(f" {one.amount:>{max(len(one.resource), 6)}g}" for one in found)
    held = "".join(f" {one.reserved:>{max(len(one.resource), 6)}.1f}" for one in found)
    return f"\n\n         {names}\n Total   {total}\n Reserved{held}\n\n"


def _gpus(view: View, name: str) -> str:
    rows = gpufacts.of_host(view, name)
    if not rows:
        return ""
    lines = ["\n GPU ALLOCATION:\n  ID MODEL                           MEMORY  JOBS UUID\n"]
    for row in rows:
        gpu, jobs = row.gpu, len(row.run) + len(row.suspended)
        model = gpu.profile or gpu.model or "-"
        lines.append(f" {row.ident:>3} {model:<30} {formats.mb_text(gpu.memory):>7} {jobs:>5} {gpu.uuid}\n")
    return "".join(lines)

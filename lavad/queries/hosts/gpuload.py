"""How busy GPUs are: lsload -gpu, -gpuload, and the GPU fields of lsload -o."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lavad.core.lang.states import HostState
from lavad.queries.facts import gpufacts, hostfacts
from lavad.queries.facts.gpufacts import MODES, GpuRow
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.hosts.hostgpus import known, memory

Read = Callable[[str, str], object]

INDICES: tuple[tuple[str, int, Callable[[GpuRow], str]], ...] = (
    ("gpu_model", 16, lambda row: row.model),
    ("gpu_mode", 10, lambda row: f"{MODES[row.state.mode]:.1f}" if row.state.mode in MODES else "-"),
    ("gpu_temp", 9, lambda row: known(row.state.temperature, "C")),
    ("gpu_ecc", 9, lambda row: f"{row.state.ecc:.1f}" if row.state.ecc >= 0 else "-"),
    ("gpu_ut", 8, lambda row: known(row.state.util, "%")),
    ("gpu_mut", 9, lambda row: known(row.state.mem_util, "%")),
    ("gpu_power", 11, lambda row: known(row.state.power, "W")),
    ("gpu_mtotal", 12, lambda row: memory(row.gpu.memory) if row.gpu.memory else "-"),
    ("gpu_mused", 11, lambda row: memory(row.state.mem_used)),
    ("gpu_pstate", 12, lambda row: known(row.state.pstate)),
    ("gpu_status", 12, lambda row: row.status),
    ("gpu_error", 11, lambda row: row.error or "-"),
)


def show_load(request: Request, names: Iterable[str], header: bool, wide: bool) -> Iterator[Shown]:
    """lsload -gpuload: a line a GPU and an instance; gpu_power with -w only."""
    rows = [(name, at, row) for name in names for at, row in enumerate(gpufacts.of_host(request.view, name))]
    lead = max([15, *(len(name) + 1 for name, _, _ in rows)]) if wide else 15
    table = [one for one in INDICES if wide or one[0] != "gpu_power"]
    widths = [max([width, *(len(text(row)) + 1 for _, _, row in rows)]) for _, width, text in table]
    if header:
        titles = "".join(f"{title:>{width}}" for (title, _, _), width in zip(table, widths, strict=True))
        yield out(f"{'HOST_NAME':<{lead}}{'gpuid':>6}{titles}\n")
    for name, at, row in rows:
        cells = (f"{text(row):>{width}}" for (_, _, text), width in zip(table, widths, strict=True))
        yield out(formats.joined(f"{name if wide or not at else '':<{lead}.{lead}}", f"{row.ident:>6}", *cells) + "\n")


def show_sums(request: Request, names: Iterable[str], header: bool) -> Iterator[Shown]:
    """lsload -gpu: a line a host: how busy those of its GPUs are that may be shared."""
    if header:
        yield out("HOST_NAME       status  ngpus  gpu_shared_avg_mut  gpu_shared_avg_ut  ngpus_physical\n")
    for name in names:
        if hostfacts.host_of(request.view, name).state is not HostState.OK:
            yield out(f"{name:<15.15} {'unavail':>6}\n")
            continue
        counts = hostfacts.gpu_counts(request.view, name)
        mem_util, util = gpufacts.averages(gpufacts.of_host(request.view, name))
        yield out(
            f"{name:<15.15} {'ok':>6} {counts['ngpus']:>6.0f} {mem_util:>18}% {util:>17}% {counts['ngpus_physical']:>15.0f}\n"
        )


COUNTS = ("ngpus", "ngpus_shared", "ngpus_excl_p", "ngpus_prohibited", "ngpus_physical")
AVERAGES = ("gpu_shared_avg_mut", "gpu_shared_avg_ut")


def fields(request: Request, names: Iterable[str]) -> Iterator[tuple[str, int, Read]]:
    """Of lsload -o: the sums of a host, and each index of its first GPU with a 0 behind it, of the second with a 1, and so on."""
    rows = {name: gpufacts.of_host(request.view, name) for name in names}
    if not any(rows.values()):
        return
    for index in COUNTS:
        yield index, 10, _count(request, index)
    for at, index in enumerate(AVERAGES):
        yield index, 10, _average(rows, at)
    for index, _, text in INDICES:
        for at in range(max(map(len, rows.values()))):
            yield f"{index}{at}", 10, _index(rows, at, text)


def _average(rows: dict[str, list[GpuRow]], at: int) -> Read:
    return lambda name, unit: f"{gpufacts.averages(rows[name])[at]}%"


def _count(request: Request, index: str) -> Read:
    return lambda name, unit: int(hostfacts.gpu_counts(request.view, name)[index])


def _index(rows: dict[str, list[GpuRow]], at: int, text: Callable[[GpuRow], str]) -> Read:
    return lambda name, unit: text(rows[name][at]) if at < len(rows[name]) else ""

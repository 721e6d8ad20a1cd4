"""The GPUs of hosts: bhosts -gpu (who holds them), lshosts -gpu (what they are).

A model is never cut: two that differ at their end must not look alike. A column is wider than LSF's where it has to be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from lavad.core.lang.ids import show as show_key
from lavad.queries.facts import gpufacts, hostfacts
from lavad.queries.facts.gpufacts import GpuRow
from lavad.queries.facts.resources import gpu_links
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, out

VENDOR = "Nvidia"
Table = Sequence[tuple[str, int, Callable[[GpuRow], str]]]
"""Title, width, and the text of each column."""


def show_use(request: Request, names: Iterable[str], header: bool, wide_form: bool) -> Iterator[Shown]:
    """bhosts -gpu: a line a GPU and an instance: the memory that is used and reserved, and the jobs by state.

    As in LSF only the first line of a host has its name: programs take a name for the begin of another host.
    """
    rows = [("" if at else name, row) for name in names for at, row in enumerate(gpufacts.of_host(request.view, name))]
    lead, least = (20, 20) if wide_form else (18, 15)
    wide = max([least, *(len(row.model) for _, row in rows)])
    if header:
        counts = f"{'NJOBS':>6} {'RUN':>6} {'SUSP':>6} {'RSV':>6}"
        yield out(f"{'HOST_NAME':<{lead}} {'GPU_ID':>6} {'MODEL':>{wide}} {'MUSED':>9} {'MRSV':>9} {counts}\n")
    for name, row in rows:
        run, suspended, held = len(row.run), len(row.suspended), len(row.held)
        yield out(
            f"{name:<{lead}} {row.ident:>6} {row.model:>{wide}} {memory(row.state.mem_used):>9} {memory(row.reserved):>9} "
            f"{run + suspended + held:>6} {run:>6} {suspended:>6} {held:>6}\n"
        )


def show_facts(request: Request, names: Iterable[str], header: bool, mig: bool) -> Iterator[Shown]:
    """lshosts -gpu: a line a GPU, with -mig a line an instance; a host without one has a line with dashes."""
    names, view = list(names), request.view
    known = {name: [row for row in gpufacts.of_host(view, name) if mig or not row.gpu.parent] for name in names}
    wide = max([15, *(len(_brand(row)) for rows in known.values() for row in rows)])
    lead = max([11, *map(len, names)])
    if header:
        more = f" {'devid':>6} {'inst_name':>12}" if mig else ""
        yield out(
            f"{'HOST_NAME':<{lead}} {'gpu_id':>6} {'gpu_model':>{wide}} {'gpu_driver':>12} {'gpu_factor':>12} {'numa_id':>12} "
            f"{'vendor':>7}{more}\n"
        )
    for name, rows in known.items():
        driver = hostfacts.host_of(view, name).facts.gpu_driver or "-"
        lines = [_fact_cells(row, driver) for row in rows] or [("-",) * 8]
        for at, (index, model, *facts, vendor, number, profile) in enumerate(lines):
            more = f" {number:>6} {profile:>12}" if mig else ""
            middle = "".join(f" {fact:>12}" for fact in facts)
            yield out(f"{name if not at else '':<{lead}} {index:>6} {model:>{wide}}{middle} {vendor:>7}{more}\n")


def _fact_cells(row: GpuRow, driver: str) -> tuple[str, ...]:
    gpu = row.gpu
    node = str(gpu.numa) if gpu.numa >= 0 else "-"
    return str(gpu.index), _brand(row), driver, "-", node, VENDOR, row.ident.partition(":")[2] or "-", gpu.profile or "-"


def _brand(row: GpuRow) -> str:
    return row.gpu.model.replace(" ", "") or "-"


def show_long(request: Request, name: str) -> str:
    """bhosts -gpu -l: what the GPUs of a host are, how they are used, and by which jobs."""
    rows = gpufacts.of_host(request.view, name)
    shareable, free = sum(row.shareable for row in rows), sum(row.free for row in rows)
    text = f"HOST: {name}\nNGPUS  NGPUS_SHARED_AVAIL  NGPUS_EXCLUSIVE_AVAIL\n{gpufacts.count(rows):<6} {shareable:<19} {free}\n"
    if error := request.view.soft.gpu_errors.get(name):
        text += f"GPU DRIVER: {error}\n"
    gpus = [row.gpu for row in rows]
    static: Table = (
        ("GPU_ID", 7, lambda row: row.ident),
        ("MODEL", 16, lambda row: row.model),
        ("MTOTAL", 7, lambda row: memory(row.gpu.memory) if row.gpu.memory else "-"),
        ("FACTOR", 7, lambda row: "-"),
        ("MRSV", 6, lambda row: memory(row.reserved)),
        ("SOCKET", 7, lambda row: str(row.gpu.numa) if row.gpu.numa >= 0 else "-"),
        ("NVLINK/XGMI", 15, lambda row: gpu_links(row.gpu, gpus, gpus)),
        ("MIG", 3, lambda row: "Y" if row.gpu.split or row.gpu.parent else "N"),
    )
    dynamic: Table = (
        ("GPU_ID", 7, lambda row: row.ident),
        ("MODE", 18, _mode),
        ("MUSED", 7, lambda row: memory(row.state.mem_used)),
        ("MRSV", 6, lambda row: memory(row.reserved)),
        ("TEMP", 5, lambda row: known(row.state.temperature, "C")),
        ("ECC", 4, lambda row: known(row.state.ecc)),
        ("UT", 5, lambda row: known(row.state.util, "%")),
        ("MUT", 5, lambda row: known(row.state.mem_util, "%")),
        ("PSTATE", 7, lambda row: known(row.state.pstate)),
        ("STATUS", 7, lambda row: row.status),
        ("ERROR", 5, lambda row: row.error or "-"),
    )
    jobs: Table = (
        ("GPU_ID", 7, lambda row: row.ident),
        ("JEXCL", 6, lambda row: "Y" if row.alone else "N"),
        ("RUNJOBIDS", 20, lambda row: _keys(row.run)),
        ("SUSPJOBIDS", 20, lambda row: _keys(row.suspended)),
        ("RSVJOBIDS", 9, lambda row: _keys(row.held)),
    )
    for title, table in (("STATIC ATTRIBUTES", static), ("DYNAMIC ATTRIBUTES", dynamic), ("GPU JOB INFORMATION", jobs)):
        text += f"\n{title}\n" + "".join(_lines(table, rows))
    return text


def _lines(table: Table, rows: Sequence[GpuRow]) -> Iterator[str]:
    """The columns, each as wide as its widest text; the last one is open to the right."""
    cells = [[text(row) for _, _, text in table] for row in rows]
    widths = [max([width, *(len(line[at]) + 1 for line in cells)]) for at, (_, width, _) in enumerate(table)]
    for line in ([title for title, _, _ in table], *cells):
        yield " ".join(f"{cell:<{width - 1}}" for cell, width in zip(line, widths, strict=True)).rstrip() + "\n"


def _mode(row: GpuRow) -> str:
    """SHARED and EXCLUSIVE_PROCESS: as a job has it, else as its compute mode says."""
    if row.exclusive:
        return "EXCLUSIVE_PROCESS"
    return "SHARED" if row.state.mode in ("", "DEFAULT") else row.state.mode


def _keys(keys: Sequence[int]) -> str:
    return " ".join(map(show_key, keys)) or "-"


def memory(mb: float) -> str:
    """``2.0G``; ``-``: not known."""
    return formats.mb_text(mb) if mb >= 0 else "-"


def known(value: float, unit: str = "") -> str:
    """``70%``; ``-``: not known."""
    return f"{value:.0f}{unit}" if value >= 0 else "-"

"""The GPUs of hosts: bhosts -gpu (who holds them) and lshosts -gpu (what they are)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lavad.core.states import SUSPENDED
from lavad.queries import hostfacts, units
from lavad.queries.request import Request, Shown, out

USE = "HOST_NAME              ID           MODEL     MUSED      MRSV  NJOBS    RUN   SUSP    RSV\n"
FACTS = "HOST_NAME   gpu_id       gpu_model      memory uuid\n"


def show_use(request: Request, names: Iterable[str], header: bool) -> Iterator[Shown]:
    """A line a GPU: memory that the jobs on it use, and the jobs by state."""
    if header:
        yield out(USE)
    for name in names:
        jobs = _jobs(request, name)
        for gpu in hostfacts.host_of(request.view, name).facts.gpus:
            counts = jobs.get(gpu.uuid, Counter())
            model = gpu.model.replace(" ", "") or "-"
            yield out(
                f"{name:<18} {gpu.index:>6} {model:>15} {units.mb_text(counts['MUSED']):>9} {'0M':>9} "
                f"{counts['RUN'] + counts['SUSP']:>6} {counts['RUN']:>6} {counts['SUSP']:>6} {0:>6}\n"
            )


def _jobs(request: Request, name: str) -> dict[str, Counter[str]]:
    """UUID to its jobs by state and the memory (MB) that their tasks use; shared evenly by a part's GPUs."""
    cluster, found = request.cluster, dict[str, Counter[str]]()
    use = cluster.use.hosts.get(name)
    for key, part in use.jobs.items() if use is not None else ():
        job = cluster.jobs.rows.get(key)
        usage = request.view.soft.usage.get(key, {}).get(name)
        memory = sum(task.gpu_mem for task in usage.tasks) if usage is not None else 0
        for uuid in part.gpus:
            counts = found.setdefault(uuid, Counter())
            counts["SUSP" if job is not None and job.state in SUSPENDED else "RUN"] += 1
            counts["MUSED"] += memory // len(part.gpus)
    return found


def show_facts(request: Request, names: Iterable[str], header: bool) -> Iterator[Shown]:
    """A line a GPU; a host without one has a line with dashes."""
    if header:
        yield out(FACTS)
    for name in names:
        gpus = hostfacts.host_of(request.view, name).facts.gpus
        for gpu in gpus:
            model = gpu.model.replace(" ", "") or "-"
            yield out(f"{name:<11} {gpu.index:>6} {model:>15} {units.mb_text(gpu.memory):>11} {gpu.uuid}\n")
        if not gpus:
            yield out(f"{name:<11} {'-':>6} {'-':>15} {'-':>11} -\n")

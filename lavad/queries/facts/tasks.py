"""lava's addition to bjobs -l: what every rank of a running job uses, host by host, and the sums."""

from __future__ import annotations

from lavad.core.plan.volatile import PartUsage, TaskUsage
from lavad.queries.facts.jobfacts import Usage
from lavad.queries.frame import units

_HEADER = " RANK HOST             PID   CPU_TIME        RSS        PSS THREADS STATE    GPU_MEM GPU_UTIL\n"


def table(usage: Usage) -> str:
    """The table, "" if no host has reported tasks."""
    rows = [(host, part, task) for host, part in usage.parts.items() for task in part.tasks]
    if not rows:
        return ""
    rows.sort(key=lambda row: (row[2].rank < 0, row[2].rank, row[0]))
    lines = [" TASK USAGE:\n", _HEADER]
    lines += [_row(host, task) for host, _, task in rows]
    lines.append(_sum(list(usage.parts.values()), [task for _, _, task in rows]))
    return "".join(lines)


def _size(kb: float) -> str:
    return units.unit_text(kb, "S") if kb else "-"


def _row(host: str, task: TaskUsage) -> str:
    rank = str(task.rank) if task.rank >= 0 else "-"
    gpu_mem, gpu_util = (f"{task.gpu_mem}M", f"{task.gpu_util}%") if task.gpu_mem or task.gpu_util else ("-", "-")
    return (
        f" {rank:>4} {host:<12} {task.pid:>7} {task.cpu:>9.1f}s {_size(task.rss):>10} {_size(task.pss):>10} "
        f"{task.threads:>7} {task.state:<5} {gpu_mem:>10} {gpu_util:>8}\n"
    )


def _sum(parts: list[PartUsage], tasks: list[TaskUsage]) -> str:
    hosts = f"{len(parts)} host{'s' if len(parts) > 1 else ''}"
    gpu_mem = sum(task.gpu_mem for task in tasks)
    busy = [task.gpu_util for task in tasks if task.gpu_mem or task.gpu_util]
    return (
        f" {'SUM':>4} {hosts:<12} {sum(task.processes for task in tasks):>7} {sum(task.cpu for task in tasks):>9.1f}s "
        f"{_size(sum(task.rss for task in tasks)):>10} {_size(sum(task.pss for task in tasks)):>10} "
        f"{sum(task.threads for task in tasks):>7} {'':<5} {f'{gpu_mem}M' if gpu_mem else '-':>10} "
        f"{f'{sum(busy) // len(busy)}%' if busy else '-':>8}\n"
    )

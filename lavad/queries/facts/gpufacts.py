"""The GPUs of a host and their MIG instances as listings show them: what is known of each, and the jobs on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lavad.core.cluster.gpu_book import EXCLUSIVE_GPU, is_exclusive
from lavad.core.lang.states import SUSPENDED, HostState
from lavad.core.plan.volatile import GpuState
from lavad.core.site.host import ClosedGpu, Gpu
from lavad.queries.facts import hostfacts
from lavad.queries.frame.view import View

MODES = {"DEFAULT": 0, "EXCLUSIVE_THREAD": 1, "PROHIBITED": 2, "EXCLUSIVE_PROCESS": 3}
"""Compute modes as NVML counts them, which are the values of LSF's index gpu_mode."""


class GpuRow(NamedTuple):
    """A GPU or an instance. ``ident``: its index, of an instance with its number in its GPU (``3:0``)."""

    gpu: Gpu
    ident: str
    state: GpuState
    closed: ClosedGpu | None
    reserved: float
    """MB that jobs have reserved."""
    run: tuple[int, ...] = ()
    suspended: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    """Waiting jobs that it is reserved for."""
    exclusive: bool = False
    """A job has it in the mode exclusive_process."""
    alone: bool = False
    """A job has it with j_exclusive."""
    taken: bool = False
    """A job has it to itself, in either way."""

    @property
    def model(self) -> str:
        """In one word; of an instance its profile."""
        return self.gpu.profile or self.gpu.model.replace(" ", "") or "-"

    @property
    def usable(self) -> bool:
        """A job may be given it as a GPU: it is whole, and not closed."""
        return not self.gpu.split and not self.gpu.parent and self.closed is None

    @property
    def allocated(self) -> bool:
        """A job that has started has it."""
        return bool(self.run or self.suspended)

    @property
    def shareable(self) -> bool:
        """One more job that shares may get it."""
        return self.usable and not self.taken

    @property
    def free(self) -> bool:
        """A job may have it to itself."""
        return self.usable and not self.run and not self.suspended and not self.held

    @property
    def status(self) -> str:
        """``ok``; ``closed``, or ``error`` of one that is faulty but not closed yet."""
        return "closed" if self.closed is not None else "error" if self.state.error else "ok"

    @property
    def error(self) -> str:
        """What is wrong with it, or why it is closed; "" if nothing."""
        if self.closed is None:
            return self.state.error
        return self.closed.why or self.state.error or f"by {self.closed.by}"


def of_host(view: View, name: str) -> list[GpuRow]:
    """All of a host, each GPU before its instances."""
    host, use = hostfacts.host_of(view, name), view.cluster.use.hosts.get(name)
    states, closed = view.soft.gpus.get(name, {}), {one.uuid: one for one in host.closed_gpus}
    jobs, seen = _jobs(view, name), dict.fromkeys((gpu.uuid for gpu in host.facts.gpus), 0)
    rows = []
    for gpu in host.facts.gpus:
        ident = str(gpu.index)
        if gpu.parent:
            ident += f":{seen.get(gpu.parent, 0)}"
            seen[gpu.parent] = seen.get(gpu.parent, 0) + 1
        on = jobs.get(gpu.uuid, _Jobs())
        taken = use is not None and use.gpus.jobs.get(gpu.uuid, 0) >= EXCLUSIVE_GPU
        rows.append(
            GpuRow(
                gpu,
                ident,
                (states.get(gpu.uuid) or _guess(gpu, on)) if host.state is HostState.OK else GpuState(gpu.uuid),
                closed.get(gpu.uuid) or closed.get(gpu.parent),
                use.gpus.mem.get(gpu.uuid, 0.0) if use is not None else 0.0,
                tuple(on.run),
                tuple(on.suspended),
                tuple(on.held),
                on.exclusive,
                on.alone,
                taken,
            )
        )
    return rows


class _Jobs:
    """Those on one GPU."""

    def __init__(self) -> None:
        self.run: list[int] = []
        self.suspended: list[int] = []
        self.held: list[int] = []
        self.exclusive = self.alone = False
        self.mb = self.percent = 0


def _jobs(view: View, name: str) -> dict[str, _Jobs]:
    """By UUID; what their tasks use is shared evenly by a part's GPUs."""
    found: dict[str, _Jobs] = {}
    use = view.cluster.use.hosts.get(name)
    if use is None:
        return found
    for key, part in use.jobs.items():
        job = view.cluster.jobs.rows.get(key)
        usage = view.soft.usage.get(key, {}).get(name)
        tasks = usage.tasks if usage is not None else ()
        asked = view.spec(job).gpu if job is not None else None
        for uuid in part.gpus:
            on = found.setdefault(uuid, _Jobs())
            (on.suspended if job is not None and job.state in SUSPENDED else on.run).append(key)
            on.mb += sum(task.gpu_mem for task in tasks) // len(part.gpus)
            on.percent += sum(task.gpu_util for task in tasks) // len(part.gpus)
            if asked is not None and is_exclusive(asked):
                on.exclusive |= asked.mode == "exclusive_process"
                on.alone |= bool(asked.j_exclusive)
    for key, placed in use.held.items():
        for uuid in placed.gpus:
            found.setdefault(uuid, _Jobs()).held.append(key)
    return found


def _guess(gpu: Gpu, on: _Jobs) -> GpuState:
    """From what its jobs use, where the agent does not say how it is."""
    share = round(100 * on.mb / gpu.memory) if gpu.memory else -1
    mode = "EXCLUSIVE_PROCESS" if on.exclusive else "DEFAULT"
    return GpuState(gpu.uuid, util=min(on.percent, 100), mem_util=share, mem_used=on.mb, mode=mode)


def count(rows: Iterable[GpuRow]) -> int:
    """How many GPUs these are; several instances of one are one."""
    return len({row.gpu.parent or row.gpu.uuid for row in rows})


def averages(rows: list[GpuRow]) -> tuple[int, int]:
    """Mean memory use and use in percent of those that may be shared; 0 of none."""
    shared = [row.state for row in rows if row.state.mode in ("", "DEFAULT") and not row.gpu.parent]
    memory = [state.mem_util for state in shared if state.mem_util >= 0]
    busy = [state.util for state in shared if state.util >= 0]
    return round(sum(memory) / max(1, len(memory))), round(sum(busy) / max(1, len(busy)))

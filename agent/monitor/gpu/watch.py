"""The GPUs of this host, looked at in a thread of their own: a driver that hangs holds up nothing else.

Rule: what is asked of a watch is what its last look found, and is there at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from itertools import zip_longest
from time import monotonic
from typing import NamedTuple, TypeVar

from agent.monitor.gpu.errors import HEALTH, HELD, Fault
from agent.monitor.gpu.held import HeldGpus
from agent.monitor.gpu.records import GpuFact, Processes
from agent.monitor.gpu.source import GpuSource, open_gpus
from agent.monitor.gpu.state import unknown
from agent.monitor.gpu_meter import GpuReading
from agent.monitor.health import GpuHealth
from proto import agent_pb2 as pb
from proto.daemon.workers import Workers

HANGS_AFTER = 10.0
"""Seconds that a look may take; a driver that nothing keeps loaded needs some for the first one."""
HANGS = "the NVIDIA driver hangs"
Open = Callable[[], GpuSource | None]
T = TypeVar("T")


class Seen(NamedTuple):
    """One look."""

    gpus: tuple[pb.Gpu, ...] = ()
    driver: str = ""
    states: tuple[pb.GpuState, ...] = ()
    readings: Mapping[str, GpuReading] = {}
    processes: Processes = []  # noqa: RUF012  # read only
    error: str = ""


class GpuWatch:
    """The newest look. ``opened``: how NVML is opened, at the first one; ``health``: what the site's own program says."""

    def __init__(self, opened: Open = open_gpus, held: HeldGpus | None = None, health: GpuHealth | None = None) -> None:
        self.held = held or HeldGpus()
        """Those that processes of jobs that are over still have."""
        self._health = health
        self._opened = opened
        self._source: GpuSource | None = None
        self._seen = Seen()
        self._looks = 0
        self._thread = Workers("GPUs")
        self._looking: asyncio.Task[None] | None = None
        self._began = 0.0

    async def look(self, wait: float) -> None:
        """Look again, unless a look goes on; return when it is done, or has taken ``wait`` seconds."""
        if self._looking is None:
            self._began = monotonic()
            self._looking = asyncio.create_task(self._look())
        if (left := self._began + wait - monotonic()) > 0:
            await asyncio.wait({self._looking}, timeout=left)

    async def call(self, ask: Callable[[GpuSource | None], T]) -> T:
        """The answer of what is asked of the GPUs, in the thread in which they are looked at; None: there is no driver."""

        def in_thread() -> T:
            return ask(self._open())

        return await self._thread.run(in_thread)

    async def fresh(self, wait: float) -> bool:
        """Look at what is so from now on; whether that was done within ``wait`` seconds."""
        until = monotonic() + wait
        if (former := self._looking) is not None:
            await asyncio.wait({former}, timeout=wait)
            if not former.done():
                return False
        # another look may have begun since: it sees what is so from now on, too
        looks = self._looks
        await self.look(max(0.0, until - monotonic()))
        return self._looks > looks

    async def first_look(self) -> None:
        """Return when the GPUs were looked at, or the driver hangs."""
        if not self._looks:
            await self.look(HANGS_AFTER)

    @property
    def hangs(self) -> bool:
        """The look that goes on takes too long."""
        return self._looking is not None and monotonic() - self._began >= HANGS_AFTER

    def facts(self) -> tuple[tuple[pb.Gpu, ...], str]:
        """The GPUs, and the driver's version."""
        return self._seen.gpus, self._seen.driver

    def states(self) -> tuple[pb.GpuState, ...]:
        """How each GPU is."""
        if self.hangs:
            return tuple(unknown(gpu.uuid, HANGS) for gpu in self._seen.gpus)
        return tuple(self._with_more(state) for state in self._seen.states)

    def _with_more(self, state: pb.GpuState) -> pb.GpuState:
        """With what the driver does not know."""
        judged = self._health.why(state.uuid) if self._health is not None else ""
        fault = Fault(judged, HEALTH) if judged else Fault(self.held.why(state.uuid), HELD)
        if state.error or not fault.error:
            return state
        found = pb.GpuState()
        found.CopyFrom(state)
        found.error, found.cause = fault
        return found

    def answering(self) -> tuple[tuple[str, int], ...]:
        """UUID and index of each GPU of which the driver says nothing wrong; of no instance."""
        well = {state.uuid for state in self._seen.states if not (state.error or self.hangs)}
        return tuple((gpu.uuid, gpu.index) for gpu in self._seen.gpus if not gpu.parent and gpu.uuid in well)

    @property
    def unknown(self) -> bool:
        """That no GPUs are seen says nothing: their driver does not answer, and has not since this watch began."""
        return bool(self.error()) and not self._seen.gpus

    def error(self) -> str:
        """What is wrong with the driver, "" if nothing is."""
        return HANGS if self.hangs else self._seen.error

    def readings(self) -> Mapping[str, GpuReading]:
        """The counters of each GPU that answers, by UUID."""
        return {} if self.hangs else self._seen.readings

    def processes(self) -> Processes:
        """The processes on each GPU."""
        return [] if self.hangs else self._seen.processes

    async def _look(self) -> None:
        try:
            seen = self._seen = await self._thread.run(self._ask)
            self._looks += 1
            self.held.look(seen.processes, [state.uuid for state in seen.states if not state.error])
        finally:
            self._looking = None

    def _open(self) -> GpuSource | None:
        if self._source is None:
            self._source = self._opened()
        return self._source

    def _ask(self) -> Seen:
        source = self._open()
        if source is None:
            return Seen()
        now = time.time()
        states, found = source.look()
        readings = {uuid: reading._replace(at=now) for uuid, reading in found.items()}
        gpus = tuple(_message(gpu, links) for gpu, links in zip_longest(source.list(), source.links(), fillvalue=()) if gpu)
        return Seen(gpus, source.driver(), states, readings, source.processes(), source.error())


def _message(gpu: GpuFact, links: tuple[str, ...]) -> pb.Gpu:
    return pb.Gpu(
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory=gpu.memory_mb,
        minor=gpu.minor,
        numa=gpu.numa,
        links=links,
        bus=gpu.bus,
        split=gpu.split,
        parent=gpu.parent,
        profile=gpu.profile,
        slices=gpu.slices,
        compute_slices=gpu.compute_slices,
    )

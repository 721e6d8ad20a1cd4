"""The monitor as the runner uses it: facts of the host, load, and the usage of all parts in one scan."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from time import monotonic
from typing import NamedTuple

from agent.monitor.facts import facts
from agent.monitor.gpu.held import HeldGpus
from agent.monitor.gpu.watch import GpuWatch
from agent.monitor.gpu_meter import GpuMeter, Held
from agent.monitor.health import GpuHealth
from agent.monitor.load import LoadSampler
from agent.monitor.usage import PartRoots, UsageSampler
from agent.parts.entry import Entry
from agent.starter.protocol.reports import HostUse
from config.values.local_resources import NONE, LocalResources
from proto import agent_pb2 as pb
from proto.daemon.workers import Workers

FACTS_KEPT = 30.0
WAIT = 2.0
"""Seconds that a heartbeat waits for the load, and a greeting for the facts of the host."""
GPU_WAIT = 0.5
"""Seconds that the first sample of a part waits for a look at the GPUs."""
OLD = 30.0
"""Seconds after which the log says that the load is old."""
UNWELL = 120.0
"""Seconds after which the host is not well."""
log = logging.getLogger("lava-agent")


class Final(NamedTuple):
    """What the samples say of a part that has ended; memory in KB."""

    cpu: float = 0.0
    mem: int = 0
    swap: int = 0
    avg_mem: int = 0
    processes: int = 0
    threads: int = 0
    cpus: float = 0.0
    cpus_after: float = 0.0
    gpus: tuple[pb.GpuUse, ...] = ()


NOT_SEEN = Final()


class HostMonitor:
    """Samples in threads of its own; remembers the newest sample of each part until the part is over.

    ``cores``: to report, 0: those that are there. ``folder``: of the agent's own, where the sums of what GPUs were used for
    outlive it; "": they do not. What hangs (a file system, a driver, a process that cannot be looked at) holds up samples of its
    own kind only: the newest values hold on. ``gpu_health``: what the site's program says of GPUs; ``find_resources``: boolean
    resources of this host, asked for once; ``local``: what the site says of this host itself.
    """

    def __init__(
        self,
        address: str,
        cores: int,
        load: Callable[[], dict[str, float]] | None = None,
        folder: str = "",
        gpu_health: GpuHealth | None = None,
        find_resources: Callable[[], tuple[str, ...]] = tuple,
        local: LocalResources = NONE,
    ) -> None:
        self._address = address
        self._cores = cores
        self.gpus = GpuWatch(held=HeldGpus(os.path.join(folder, "gpus_held.json") if folder else ""), health=gpu_health)
        self._sample_load = load or LoadSampler().sample
        self._newest_load: dict[str, float] = {}
        self._load_at = monotonic()
        self._load_said = ""
        """What the log says of it, "": nothing is wrong."""
        self._loading: asyncio.Task[None] | None = None
        self._load_thread = Workers("load of the host")
        self._meter = GpuMeter(os.path.join(folder, "gpu_use.json") if folder else "")
        self._usage = UsageSampler(self.gpus, meter=self._meter)
        self._find_resources = find_resources
        self._local = local
        self._resources: tuple[str, ...] | None = None
        self._facts = pb.Facts()
        self._facts_at = 0.0
        self._one = Workers("facts and usage")
        self._newest: dict[str, pb.Usage] = {}
        self._unsent: dict[str, pb.Usage] = {}
        self._sampling = False
        self._failed = ""
        """Why the last scan could not be made, which the log has."""
        self._over: list[str] = []

    async def facts(self) -> pb.Facts:
        """What this host is, at most half a minute old, or older while it cannot be found out; its GPUs as last seen."""
        now = asyncio.get_running_loop().time()
        if not self._facts_at:
            self._facts = await self._one.run(self._look)
            await self.gpus.first_look()
        elif now > self._facts_at + FACTS_KEPT:
            try:
                async with asyncio.timeout(WAIT):
                    self._facts = await self._one.run(self._look)
            except OSError as error:  # a TimeoutError is one
                why = f" ({error})" if str(error) else ""
                log.warning("what this host is cannot be found out now%s: what was known before is used", why)
        self._facts_at = now
        gpus, driver = self.gpus.facts()
        found = pb.Facts(gpus=gpus, gpu_driver=driver)
        found.MergeFrom(self._facts)
        return found

    def _look(self) -> pb.Facts:
        if self._resources is None:
            self._resources = self._find_resources()
        found = facts(self._address, self._cores or None)
        found.resources.extend(self._resources)
        found.type = self._local.type or found.type
        found.local.update(self._local.resources)
        return found

    async def load(self) -> dict[str, float]:
        """The load indices now; those of the last sample where this one takes longer than WAIT, {} before the first."""
        if self._loading is None:
            self._loading = asyncio.create_task(self._measure())
        await asyncio.wait({self._loading}, timeout=WAIT)
        if (age := self.load_age()) > OLD and not self._load_said:
            self._say_of_load(f"the load was last measured {age:.0f} s ago")
        return dict(self._newest_load)

    def load_age(self) -> float:
        """Seconds since the load was measured."""
        return monotonic() - self._load_at

    def why_unwell(self) -> str:
        """The load cannot be measured: what hangs (a file system, the kernel) would hold up jobs, too."""
        return "its load cannot be measured: a look at this host hangs" if self.load_age() > UNWELL else ""

    async def _measure(self) -> None:
        try:
            self._newest_load = await self._load_thread.run(self._sample_load)
            self._load_at = monotonic()
            if self._load_said:
                self._say_of_load("")
        except OSError as error:
            self._say_of_load(f"the load cannot be measured: {error}")
        finally:
            self._loading = None

    def _say_of_load(self, why: str) -> None:
        """A line of the log, unless it would be the last one again: what lasts is found at each heartbeat."""
        if why != self._load_said:
            log.warning("%s", why or "the load is measured again")
        self._load_said = why

    def has_new(self, entries: Iterable[Entry]) -> bool:
        """Whether a part that runs was never sampled."""
        return any(entry.tasks and entry.end is None and entry.uid not in self._newest for entry in entries)

    async def usage(self, entries: Iterable[Entry]) -> dict[str, pb.Usage]:
        """One scan for all parts that run; {} where there can be none, as too many files are open, say."""
        roots = {
            entry.uid: PartRoots(
                entry.key,
                entry.part.attempt,
                entry.tasks,
                entry.shepherd,
                _memory_limit(entry),
                entry.gpus,
                entry.started_at,
            )
            for entry in entries
            if (entry.tasks or entry.shepherd) and entry.end is None
        }
        usage = self._usage
        if not roots:
            return {}
        if any(uid not in self._newest for uid in roots):
            await self.gpus.look(GPU_WAIT)
        self._sampling = True
        try:
            found = await self._one.run(usage.sample, roots)
            self._failed = ""
        except OSError as error:
            found = {}
            if str(error) != self._failed:
                self._failed = str(error)
                log.warning("what jobs use cannot be measured: %s", error)
        finally:
            self._sampling = False
        for uid in self._over:
            found.pop(uid, None)
            usage.forget(uid)
            self._meter.drop(uid)
        self._over.clear()
        self._newest |= found
        self._unsent |= found
        return found

    def unsent(self) -> list[pb.Usage]:
        """The samples that the master has not got."""
        found, self._unsent = list(self._unsent.values()), {}
        return found

    def peaks(self, uid: str) -> HostUse:
        """The peaks of a part that runs."""
        return self._usage.peaks(uid)

    def final(self, entry: Entry) -> Final:
        """The part has ended: its peaks, all 0 when it was too short to be seen; nothing more is kept of it."""
        uid, end = entry.uid, entry.end
        self._unsent.pop(uid, None)
        newest = self._newest.pop(uid, None)
        if newest is None and not self._sampling and not entry.gpus:
            self._usage.forget(uid)
            return NOT_SEEN
        gpus: list[pb.GpuUse] = []
        began, at = (end.started, end.at) if end is not None else (entry.started_at, time.time())
        if began and entry.gpus:
            gpus = self._meter.close(uid, Held(entry.gpus, began), at)
        else:
            self._meter.drop(uid)
        peaks = self._usage.peaks(uid)
        if self._sampling:
            self._over.append(uid)
        else:
            self._usage.forget(uid)
        cpu = newest.cpu if newest is not None else 0.0
        memory = peaks.mem, peaks.swap, peaks.avg_mem
        return Final(cpu, *memory, peaks.processes, peaks.threads, peaks.cpus, peaks.cpus_after, tuple(gpus))


def _memory_limit(entry: Entry) -> int:
    rules = entry.part.rules
    return rules.mem if rules.enforce_memory else 0

"""The monitor as the runner uses it: facts of the host, load, and the usage of all parts in one scan."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from agent.entry import Entry
from agent.monitor.usage import PartRoots, UsageSampler
from agent.standin import LoadSampler, facts
from proto import agent_pb2 as pb


class Final(NamedTuple):
    """What the samples say of a part that has ended; memory in KB."""

    cpu: float = 0.0
    mem: int = 0
    swap: int = 0
    avg_mem: int = 0
    processes: int = 0
    threads: int = 0


class Watch:
    """Samples in a thread, one at a time; remembers the newest sample of each part until the part is over."""

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus
        self._load = LoadSampler()
        self._usage = UsageSampler()
        self._newest: dict[str, pb.Usage] = {}
        self._unsent: dict[str, pb.Usage] = {}
        self._sampling = False
        self._over: list[str] = []

    async def facts(self) -> pb.Facts:
        """What this host is."""
        return await asyncio.to_thread(facts, self._gpus)

    async def load(self) -> dict[str, float]:
        """The load indices now."""
        return await asyncio.to_thread(self._load.sample)

    async def usage(self, entries: Iterable[Entry]) -> dict[str, pb.Usage]:
        """One scan for all parts that run."""
        roots = {
            entry.uid: PartRoots(entry.key, entry.part.attempt, entry.tasks, entry.shepherd, _memory_limit(entry))
            for entry in entries
            if entry.tasks and entry.end is None
        }
        if not roots:
            return {}
        self._sampling = True
        try:
            found = await asyncio.to_thread(self._usage.sample, roots)
        finally:
            self._sampling = False
        for uid in self._over:
            found.pop(uid, None)
            self._usage.forget(uid)
        self._over.clear()
        self._newest |= found
        self._unsent |= found
        return found

    def unsent(self) -> list[pb.Usage]:
        """The samples that the master has not got."""
        found, self._unsent = list(self._unsent.values()), {}
        return found

    def final(self, uid: str) -> Final:
        """The part has ended: its peaks, all 0 when it was too short to be seen; nothing more is kept of it."""
        self._unsent.pop(uid, None)
        newest = self._newest.pop(uid, None)
        peaks = self._usage.peaks(uid)
        if self._sampling:
            self._over.append(uid)
        else:
            self._usage.forget(uid)
        cpu = newest.cpu if newest is not None else 0.0
        return Final(cpu, peaks.mem, peaks.swap, peaks.avg_mem, peaks.processes, peaks.threads)


def _memory_limit(entry: Entry) -> int:
    rules = entry.part.rules
    return rules.mem if rules.enforce_memory else 0

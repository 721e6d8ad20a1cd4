"""The end of a part that has GPUs: they are looked at before the master hears that they are free.

Rule: the report that frees a GPU says what is wrong with it, so the master closes it in the same commit: no start can come
first. Told by a heartbeat, it would leave a moment in which the GPU is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Sequence

from agent.launch.outputs import show
from agent.monitor.gpu.errors import FAULT, GONE, HEALTH, HELD
from agent.monitor.gpu.holders import Ended, Holder, find, left, sentence, to_end
from agent.monitor.gpu.watch import HANGS, GpuWatch
from agent.monitor.procscan import read_proc
from agent.parts.entry import Entry, GpuEnd
from agent.parts.table import PartTable
from agent.starter.protocol.reports import Ended as EndedReport
from agent.starter.protocol.reports import Gone, Lost, PartReport
from proto import agent_pb2 as pb

LOOK = 10.0
"""Seconds that a look may take: a driver that hangs holds up no end for longer."""
DIES_WITHIN = 5.0
"""Seconds in which a process that was killed lets go of its GPU, unless the kernel holds it."""
PAUSE = 0.1
log = logging.getLogger("lava-agent")
Later = tuple[Entry, PartReport]


class GpuEnds:
    """Ends of parts whose GPUs are being looked at; all that wait share a look."""

    def __init__(self, host: str, gpus: GpuWatch, table: PartTable) -> None:
        self._host = host
        self._gpus = gpus
        self._table = table
        self.poke: Callable[[], None] = _nothing
        """Called when ``done`` has something."""
        self._waiting: list[Later] = []
        self._done: list[Later] = []
        self._over: set[str] = set()
        """The uids of parts of which nothing is left: the table hears of it after the look."""
        self._work: asyncio.Task[None] | None = None

    def take(self, entry: Entry, report: PartReport) -> bool:
        """Whether this report has to wait for a look at the part's GPUs; then ``done`` gives it later, in order."""
        if not entry.gpus or not isinstance(report, EndedReport | Gone | Lost) or entry.orphan:
            return False
        self._waiting.append((entry, report))
        if not isinstance(report, EndedReport) or report.gone:
            self._over = {one.uid for one in self._table if one.uid in self._over} | {entry.uid}
        if self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._look())
        return True

    def done(self) -> list[Later]:
        """Those whose GPUs were looked at; what is wrong with them is in the entry."""
        found, self._done = self._done, []
        return found

    async def _look(self) -> None:
        try:
            while self._waiting:
                ends, self._waiting = self._waiting, []
                try:
                    await self._judge(ends)
                except Exception:
                    log.exception("the GPUs of parts that ended could not be looked at")
                self._done += ends
                self.poke()
        finally:
            self._work = None

    async def _judge(self, ends: Sequence[Later]) -> None:
        answers = await self._gpus.fresh(LOOK)
        over = {entry.uid: entry for entry, _ in ends if entry.uid in self._over}
        held = await self._clear(list(over.values())) if answers else {}
        for entry in {entry.uid: entry for entry, _ in ends}.values():
            faults = self._faults(entry, held, answers)
            entry.gpu_end = GpuEnd(faults, self._told(faults))

    def _faults(self, entry: Entry, held: dict[str, str], answers: bool) -> tuple[pb.GpuFault, ...]:
        found = []
        states = {state.uuid: state for state in self._gpus.states()}
        for uuid in entry.gpus:
            state = states.get(uuid)
            if not answers:
                found.append(pb.GpuFault(uuid=uuid, cause=HEALTH, error=HANGS))
            elif state is not None and state.error:
                found.append(pb.GpuFault(uuid=uuid, cause=state.cause, error=state.error))
            elif uuid in held:
                found.append(pb.GpuFault(uuid=uuid, cause=HELD, error=held[uuid]))
        return tuple(found)

    def _told(self, faults: Sequence[pb.GpuFault]) -> str:
        """For the user's report: which of its GPUs broke."""
        index = {gpu.uuid: gpu.index for gpu in self._gpus.facts()[0]}
        broken = [one for one in faults if one.cause in (GONE, FAULT)]
        names = [(f"GPU {index.get(one.uuid, one.uuid)} of host {self._host}", one.error) for one in broken]
        return "; ".join(f"{name} {'was' if why.startswith('lost') else 'failed:'} {why}" for name, why in names)

    async def _clear(self, over: Sequence[Entry]) -> dict[str, str]:
        """End what still holds the GPUs of parts that are over; who cannot be ended, by UUID."""
        others = [one for one in self._table if not one.over and one.uid not in self._over]
        live, taken = {one.uid for one in others}, {uuid for one in others for uuid in one.gpus}
        ended = [
            Ended(one.uid, one.made.user.name, one.made.user.uid, one.gpus, set(one.gpus) - taken)
            for one in over
            if one.made is not None
        ]
        keys = {one.uid: one.key for one in over}
        loop = asyncio.get_running_loop()
        until, killed = loop.time() + DIES_WITHIN, set[int]()
        while True:
            holders = self._holders(ended, others)
            for one in ended:
                for holder in to_end(holders, one, live):
                    if holder.pid not in killed:
                        killed.add(holder.pid)
                        name = show(keys[one.attempt])
                        log.warning("job %s is over: process %d, which holds a GPU of it, is killed", name, holder.pid)
                        _kill(holder)
            rest = [(one, left(holders, one, live)) for one in ended]
            if not any(holder.pid in killed for _, found in rest for holder in found) or loop.time() >= until:
                return self._keep(rest)
            await asyncio.sleep(PAUSE)
            await self._gpus.fresh(LOOK)

    def _holders(self, ended: Sequence[Ended], others: Sequence[Entry]) -> list[Holder]:
        roots = {pid for one in others for pid in (one.shepherd, *(task.pid for task in one.tasks)) if pid > 1}
        return find(self._gpus.processes(), {uuid for one in ended for uuid in one.gpus}, roots)

    def _keep(self, rest: Sequence[tuple[Ended, Sequence[Holder]]]) -> dict[str, str]:
        found: dict[str, str] = {}
        for uuid in {holder.uuid for _, holders in rest for holder in holders}:
            own = {holder: one for one, holders in rest for holder in holders if holder.uuid == uuid}
            first = min(own, key=lambda holder: holder.pid)
            found[uuid] = sentence(own, own[first])
            self._gpus.held.hold(uuid, found[uuid], ((one.pid, one.start) for one in own))
        return found


def _kill(one: Holder) -> None:
    """By a pidfd: its number may be another's by now."""
    with contextlib.suppress(OSError):
        fd = os.pidfd_open(one.pid)
        try:
            again = read_proc(one.pid)
            if again is not None and again.start == one.start:
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)


def _nothing() -> None:
    pass

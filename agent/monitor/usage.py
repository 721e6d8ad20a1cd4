"""What all parts of a host use: one look at /proc for all of them.

Rule: a sample costs what the jobs' own processes cost to read. Processes of no part are read once and then passed over
(all are looked at again every twelfth sample and whenever a part is new), PSS is read at the first sample, soon again,
then every half minute, or at every sample near the memory limit, and never takes more than a two-hundredth of a core.
In between, what a process grew by counts as its own.

Memory is LSF's: ``rss`` is the sum over processes, so shared pages count once per process; ``pss`` counts them once.
``swap`` is what is swapped out. Kernels since 6.2 keep rss in per-processor counters, off by some MB on large hosts;
pss is exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol

from agent.monitor.cputime import CpuPeak, CpuTime
from agent.monitor.gpu.records import Processes
from agent.monitor.gpu_meter import NO_LOOK, GpuLook, GpuMeter, GpuReading, GpuShare, Held
from agent.monitor.left_ranks import LeftRanks
from agent.monitor.procscan import TICKS, Proc, list_pids, read_procs, read_pss
from agent.monitor.tree import REST, Id, Owner, PartRoots, assign
from agent.monitor.waiting import Stillness, by_rank
from agent.starter.protocol.reports import HostUse
from proto import agent_pb2 as pb

__all__ = ["REST", "PartRoots", "UsageSampler"]

FULL_EVERY = 12
PSS_SECOND = 5.0
PSS_EVERY = 30.0
PSS_SHARE = 200
NEAR_LIMIT = 0.8

GpuUse = dict[int, tuple[int, int]]
"""pid -> (MB, percent), over all GPUs."""
Shares = dict[str, dict[str, GpuShare]]
"""UUID of a GPU -> uid of a part."""


class _Gpus(Protocol):
    """What was found of them, there at once: NVML may hang."""

    def processes(self) -> Processes: ...

    def readings(self) -> Mapping[str, GpuReading]: ...


class UsageSampler:
    """Samples the parts of this host; not to be called from two threads at once.

    ``clock`` gives seconds since the epoch.
    """

    def __init__(self, gpus: _Gpus | None = None, clock: Callable[[], float] = time.time, meter: GpuMeter | None = None) -> None:
        self._gpus = gpus
        self._meter = meter or GpuMeter()
        self._clock = clock
        self._books: dict[str, _Book] = {}
        self._roots: dict[str, PartRoots] = {}
        self._known: dict[Id, Owner] = {}
        self._foreign: set[int] = set()
        self._kernel: set[int] = set()
        self._left_ranks = LeftRanks()
        self._samples = 0

    def sample(self, parts: Mapping[str, PartRoots]) -> dict[str, pb.Usage]:
        """What each part uses now and has used. A part stays known until ``forget``, also when it is not asked for."""
        now = self._clock()
        procs, skipped = self._look(parts)
        owners = assign(procs, parts, self._known, skipped)
        self._foreign |= owners.foreign
        self._kernel |= {pid for pid in owners.foreign if procs[pid].kernel}
        self._left_ranks.name(owners.members, procs, parts)
        gpu_use, shares = self._gpu_use(owners.members)
        held = {uid: Held(roots.gpus, roots.since) for uid, roots in parts.items() if roots.gpus}
        look = GpuLook(self._gpus.readings(), shares) if held and self._gpus is not None else NO_LOOK
        measured = self._meter.enter(now, held, look)
        self._known = {}
        found: dict[str, pb.Usage] = {}
        for uid, members in owners.members.items():
            for pid, rank in members.items():
                self._known[pid, procs[pid].start] = Owner(uid, rank)
            book = self._books.get(uid)
            if book is None:
                book = self._books[uid] = _Book(now)
            found[uid] = book.enter(now, parts[uid], members, procs, gpu_use)
            found[uid].gpus.extend(measured.get(uid, ()))
        return found

    def peaks(self, uid: str) -> HostUse:
        """The peaks so far; zeros for a part that was never sampled."""
        book = self._books.get(uid)
        return book.peaks if book is not None else HostUse()

    def forget(self, uid: str) -> pb.Usage | None:
        """Drop a part; its last sample, with the peaks and without processes. None: it was never sampled."""
        book = self._books.pop(uid, None)
        self._roots.pop(uid, None)
        return book.final() if book is not None else None

    def _look(self, parts: Mapping[str, PartRoots]) -> tuple[dict[int, Proc], set[int]]:
        """What must be read now, and the foreign processes that were passed over."""
        self._samples += 1
        if self._samples % FULL_EVERY == 0:
            self._foreign, self._kernel = set(), set()
        elif any(self._roots.get(uid) != roots for uid, roots in parts.items()):
            self._foreign = set(self._kernel)
        self._roots = dict(parts)
        pids = list_pids()
        self._foreign.intersection_update(pids)
        self._kernel &= self._foreign
        for roots in parts.values():
            self._foreign.discard(roots.shepherd)
            self._foreign.difference_update(pid for _, pid, _ in roots.tasks)
        skipped = set(self._foreign)
        return read_procs([pid for pid in pids if pid not in skipped]), skipped

    def _gpu_use(self, members: Mapping[str, Mapping[int, int]]) -> tuple[GpuUse, Shares]:
        use: GpuUse = {}
        shares: Shares = {}
        owner = {pid: uid for uid, pids in members.items() for pid in pids}
        if self._gpus is None or not owner:
            return use, shares
        for one in self._gpus.processes():
            mem, util = use.get(one.pid, (0, 0))
            use[one.pid] = (mem + one.mem_mb, util + one.util_percent)
            if (uid := owner.get(one.pid)) is not None:
                mem, util, mem_util = shares.setdefault(one.uuid, {}).get(uid, (0, 0, 0))
                shares[one.uuid][uid] = GpuShare(mem + one.mem_mb, util + one.util_percent, mem_util + one.mem_util_percent)
        return use, shares


class _Book:
    """What is kept of one part between samples."""

    def __init__(self, now: float) -> None:
        self.peaks = HostUse()
        self._cpu = CpuTime()
        self._shares: dict[Id, tuple[int, int, int]] = {}
        self._pss_due = now
        self._pss_pause = PSS_SECOND
        self._at = now
        self._weighed = 0.0
        self._cpu_peak = CpuPeak(now)
        self._seconds = 0.0
        self._newest = pb.Usage()
        self._stillness = Stillness()

    def enter(
        self, now: float, roots: PartRoots, members: Mapping[int, int], procs: Mapping[int, Proc], gpu_use: GpuUse
    ) -> pb.Usage:
        """Take one sample into the books."""
        ticks = self._cpu.update(members, procs, roots.shepherd)
        living = [(procs[pid], rank) for pid, rank in members.items() if procs[pid].state not in "ZX"]
        rss = sum(proc.rss for proc, _ in living)
        self._read_shares(now, living, bool(roots.memory_limit) and rss >= NEAR_LIMIT * roots.memory_limit)
        tasks = {
            rank: pb.TaskUsage(rank=rank, pid=pid, cpu=ticks.get(rank, 0) / TICKS, state=_state(procs, pid, start))
            for rank, pid, start in roots.tasks
        }
        pss = swap = threads = 0
        for proc, rank in living:
            share, swapped, then = self._shares.get((proc.pid, proc.start), (proc.rss, 0, proc.rss))
            share = min(share + max(0, proc.rss - then), proc.rss) if self._shares else 0
            pss += share
            swap += swapped
            threads += proc.threads
            if (task := tasks.get(rank)) is not None:
                _add(task, proc, share, gpu_use.get(proc.pid))
        self._look_at_still(now, tasks, ticks, living)
        self._weigh(now, rss, swap, len(living), threads)
        cpu = sum(ticks.values()) / TICKS
        self._cpu_peak.see(now, cpu)
        self.peaks = self.peaks._replace(cpus=self._cpu_peak.cpus, cpus_after=self._cpu_peak.after, cpu=cpu)
        self._newest = pb.Usage(
            key=roots.key,
            attempt=roots.attempt,
            at=now,
            cpu=cpu,
            rss=rss,
            pss=pss,
            swap=swap,
            threads=threads,
            cpu_peak=self.peaks.cpus,
            cpu_peak_after=self.peaks.cpus_after,
            max_mem=self.peaks.mem,
            max_swap=self.peaks.swap,
            avg_mem=self.peaks.avg_mem,
            pids=[proc.pid for proc, _ in living],
            pgids=sorted({proc.pgrp for proc, _ in living}),
            tasks=[tasks[rank] for rank in sorted(tasks)],
        )
        return self._newest

    def _look_at_still(
        self, now: float, tasks: Mapping[int, pb.TaskUsage], ticks: Mapping[int, int], living: list[tuple[Proc, int]]
    ) -> None:
        if not tasks or REST in tasks:
            return
        for rank, processes in by_rank(living, tasks).items():
            stopped = any(proc.state in "Tt" for proc in processes)
            seen = self._stillness.see(rank, ticks.get(rank, 0), now, stopped, processes)
            if seen.waits:
                tasks[rank].wait_pid, tasks[rank].waits = seen.pid, seen.waits
            if stopped:
                tasks[rank].state = "T"

    def final(self) -> pb.Usage:
        """The last sample as what is left of a part that has ended."""
        last = pb.Usage()
        last.CopyFrom(self._newest)
        last.rss = last.pss = last.swap = last.threads = 0
        del last.pids[:]
        del last.pgids[:]
        return last

    def _read_shares(self, now: float, living: list[tuple[Proc, int]], near: bool) -> None:
        """PSS and swap of each process, where due. Large processes take long: that sets when it is due again."""
        is_set_back = now < self._at  # the clock: what is due would not be for as long
        if now < self._pss_due and not is_set_back and not (near and now >= self._pss_due - self._pss_pause):
            return
        began = time.thread_time()
        shares: dict[Id, tuple[int, int, int]] = {}
        for proc, _ in living:
            if (share := read_pss(proc.pid)) is not None:
                shares[proc.pid, proc.start] = (*share, proc.rss)
        if self._shares:
            self._pss_pause = PSS_EVERY
        self._shares = shares
        # near the limit the wait is less by the pause, so that only the cost itself holds it back
        self._pss_due = now + self._pss_pause + PSS_SHARE * (time.thread_time() - began)

    def _weigh(self, now: float, rss: int, swap: int, processes: int, threads: int) -> None:
        passed = max(0.0, now - self._at)
        self._at = now
        self._seconds += passed
        self._weighed += rss * passed
        old = self.peaks
        self.peaks = old._replace(
            mem=max(old.mem, rss),
            swap=max(old.swap, swap),
            avg_mem=int(self._weighed / self._seconds) if self._seconds else rss,
            processes=max(old.processes, processes),
            threads=max(old.threads, threads),
        )


def _add(task: pb.TaskUsage, proc: Proc, share: int, gpu: tuple[int, int] | None) -> None:
    task.rss += proc.rss
    task.pss += share
    task.threads += proc.threads
    task.processes += 1
    if gpu is not None:
        task.gpu_mem += gpu[0]
        task.gpu_util += gpu[1]


def _state(procs: Mapping[int, Proc], pid: int, start: int) -> str:
    """The state letter of a task's first process; "" when it has ended and was reaped."""
    proc = procs.get(pid)
    return proc.state if proc is not None and start in (0, proc.start) else ""

"""Which ranks of a parallel job hang or hold up the others, from the usage samples of its hosts.

Rule: pure, and based only on samples that are taken anyway. A rank is reported only after it has differed from all others for the
whole time. Ranks that behave alike, busy or slow, are never reported, except for a job in which no rank makes progress. Times are
the master's on arrival of a sample; rates are computed with the host's clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from lavad.core.job.job import Suspect
from lavad.core.lang.states import HangState
from lavad.core.plan.volatile import PartUsage, TaskUsage

IDLE = 0.02
"""CPU use, as a fraction of a core, below which a rank counts as idle."""
ACTIVE = 0.05
GPU_ACTIVE = 5
"""Per cent."""
NAMED = 8
FEW = 4
"""Ranks that differ are reported when there are at least this many others for each; a single one always."""


class Rank(msgspec.Struct):
    """What is known of one rank. Times in seconds since the epoch, 0: it is not in that condition now."""

    host: str
    root: int
    pid: int
    at: float
    cpu: float
    heard: float
    stopped: float = 0.0
    idle: float = 0.0
    active: float = 0.0
    waits: str = ""


Ranks = dict[int, Rank]


def take(ranks: Ranks, host: str, usage: PartUsage, now: float) -> None:
    """A sample of one host."""
    for task in usage.tasks:
        if task.rank < 0:
            continue
        if task.state in ("", "Z"):
            # a rank may end before the others; nothing waits for it
            ranks.pop(task.rank, None)
            continue
        known = ranks.get(task.rank)
        # a sample from before the last one is of a host whose clock was set back: its times tell nothing of what was known
        if known is None or known.host != host or known.root != task.pid or usage.at < known.at:
            ranks[task.rank] = known = Rank(host, task.pid, task.pid, usage.at, task.cpu, now)
        elif usage.at > known.at:
            _move(known, task, usage.at)
        known.heard = now
        stopped = task.state in ("T", "t")
        if known.stopped and not stopped:
            known.idle = 0.0
        known.stopped = (known.stopped or now) if stopped else 0.0
        known.waits, known.pid = task.waits, task.wait_pid or task.pid


def _move(rank: Rank, task: TaskUsage, at: float) -> None:
    rate = (task.cpu - rank.cpu) / (at - rank.at)
    gpu = task.gpu_util >= GPU_ACTIVE
    rank.idle = (rank.idle or rank.heard) if rate < IDLE and not gpu else 0.0
    rank.active = (rank.active or rank.heard) if rate >= ACTIVE or gpu else 0.0
    rank.at, rank.cpu = at, task.cpu


def forget(ranks: Ranks, hosts: Container[str]) -> None:
    """Drop ranks that are gone: of hosts that the job has left, or that a host does not report any more."""
    newest: dict[str, float] = {}
    for rank in ranks.values():
        newest[rank.host] = max(newest.get(rank.host, 0.0), rank.heard)
    for number in [n for n, rank in ranks.items() if rank.host not in hosts or rank.heard < newest[rank.host]]:
        del ranks[number]


def judge(ranks: Mapping[int, Rank], now: float, seconds: float) -> tuple[Suspect, ...]:
    """The ranks that hang or hold up the others; (): none, or the samples do not tell."""
    if len(ranks) < 2:
        return ()
    since = now - seconds
    stopped = [n for n, rank in ranks.items() if 0 < rank.stopped <= since]
    if stopped:
        return _named(ranks, stopped, HangState.STOPPED)
    # a runnable rank that gets no CPU does not hang: its host is overloaded
    idle = [n for n, rank in ranks.items() if 0 < rank.idle <= since and rank.waits]
    active = [n for n, rank in ranks.items() if 0 < rank.active <= since]
    if len(idle) == len(ranks):
        odd = _odd(ranks)
        if odd:
            return _named(ranks, odd, HangState.ODD)
        first = min(ranks)
        return (_suspect(first, ranks[first], HangState.ALL),)
    if len(idle) + len(active) < len(ranks):
        return ()
    if _are_few(idle, active):
        return _named(ranks, idle, HangState.IDLE)
    if _are_few(active, idle):
        return _named(ranks, active, HangState.BEHIND)
    return ()


def is_consistent(ranks: Mapping[int, Rank], suspects: Iterable[Suspect]) -> bool:
    """Whether an earlier suspicion may still hold: no sample contradicts it."""
    for suspect in suspects:
        rank = ranks.get(suspect.rank)
        if rank is None:
            continue
        if suspect.how is HangState.STOPPED and not rank.stopped:
            return False
        if suspect.how is HangState.BEHIND and rank.idle:
            return False
        if suspect.how in (HangState.IDLE, HangState.ODD, HangState.ALL) and rank.active:
            return False
    return True


def _are_few(some: Sequence[int], others: Sequence[int]) -> bool:
    return bool(some) and len(others) >= 2 and (len(some) == 1 or len(some) * FEW <= len(others))


def _odd(ranks: Mapping[int, Rank]) -> list[int]:
    """Where all ranks wait: the few that are blocked in a different place than most ranks."""
    counts = Counter(rank.waits for rank in ranks.values())
    most = counts.most_common(1)[0][0]
    if not most:
        return []
    odd = [number for number, rank in ranks.items() if rank.waits and rank.waits != most]
    return odd if _are_few(odd, [n for n in ranks if n not in odd]) else []


def _named(ranks: Mapping[int, Rank], numbers: Iterable[int], how: HangState) -> tuple[Suspect, ...]:
    return tuple(_suspect(number, ranks[number], how) for number in sorted(numbers)[:NAMED])


def _suspect(number: int, rank: Rank, how: HangState) -> Suspect:
    since = {HangState.STOPPED: rank.stopped, HangState.BEHIND: rank.active}.get(how, rank.idle)
    return Suspect(rank=number, host=rank.host, pid=rank.pid, how=how, since=since, waits=rank.waits)

"""Ending what a former starter of the same folder left running, before the new one takes orders.

Rule: a process is known by boot, pid and start time, or by the mark in its environment; a pid alone proves nothing.
"""

from __future__ import annotations

import os
import signal
import time

from agent.starter.protocol.reports import End, Lost, PartState
from agent.starter.supervisor.journal import Former, FormerShepherd
from agent.starter.system import proctree

LOST_REASON = "the starter was restarted"
PATIENCE = 10.0


def clear(former: Former, boot: str, host: str) -> None:
    """Kill what is left of the former starter's parts and settle their states; nothing can be left after a reboot."""
    if boot == former.boot:
        marks = {os.fsencode(f"LAVA_ATTEMPT={p.uid}") for p in former.parts.values() if not p.state.over}
        _kill_what_is_left(former.shepherds, marks, host)
    for part in former.parts.values():
        if part.state.over:
            continue
        if part.end is not None and not _cut_down(part.end):
            part.state = PartState.GONE
        else:
            # an unreported SIGKILL beside the starter's own death: the host was shot down, the job did not end by itself
            part.end = None
            part.state = PartState.LOST
            part.reason = Lost(part.uid, LOST_REASON)


def _cut_down(end: End) -> bool:
    return end.status & 0x7F == signal.SIGKILL


def _alive(shepherd: FormerShepherd) -> bool:
    fields = proctree.stat_fields(shepherd.pid)
    return len(fields) > 19 and int(fields[19]) == shepherd.starttime and fields[0] not in (b"Z", b"X")


def _kill_what_is_left(shepherds: list[FormerShepherd], marks: set[bytes], host: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        alive = [s.pid for s in shepherds if _alive(s)]
        marked = {p for p in proctree.having_in_environment(marks, host) if not _zombie(p)} if marks else set()
        if not alive and not marked:
            return
        # The shepherds stop first and die last: while they live, nothing of theirs can get away to init.
        for pid in alive:
            proctree.send(pid, signal.SIGSTOP)
        own = os.getpid()
        proctree.kill_all(lambda: {*proctree.below([*alive, *marked]), *marked} - {own, *alive})  # noqa: B023
        for pid in alive:
            proctree.send(pid, signal.SIGKILL)
        time.sleep(0.01)


def _zombie(pid: int) -> bool:
    fields = proctree.stat_fields(pid)
    return not fields or fields[0] in (b"Z", b"X")

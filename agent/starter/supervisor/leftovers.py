"""Ends what a former starter of the same folder left running, before the new one accepts orders.

Rule: a process is identified by boot, pid and start time, or by LAVA_ATTEMPT in its environment; never by its pid alone.
"""

from __future__ import annotations

import os
import signal
import time

from agent.starter.protocol.reports import End, Lost, PartState
from agent.starter.supervisor.journal import FormerShepherd, FormerState
from agent.starter.system import proctree

LOST_REASON = "the starter was restarted"
PATIENCE = 10.0


def clear(former: FormerState, boot: str, host: str) -> None:
    """Kill the remaining processes of the former starter's parts and set their final states; after a reboot there are none."""
    if boot == former.boot:
        marks = {os.fsencode(f"LAVA_ATTEMPT={p.uid}") for p in former.parts.values() if not p.state.over}
        _kill_what_is_left(former.shepherds, marks, host)
    for part in former.parts.values():
        if part.state.over:
            continue
        if part.end is not None and not _cut_down(part.end):
            part.state = PartState.GONE
        else:
            # A task killed by SIGKILL together with the starter: the host went down, the job did not end by itself.
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
        # Shepherds are stopped first and killed last: while they live, init does not inherit their processes.
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

"""Ends what a former starter of the same folder left running, before the new one accepts orders.

Rule: a process is identified by boot, pid and start time, or by LAVA_ATTEMPT in its environment; never by its pid alone.
"""

from __future__ import annotations

import os
import select
import signal
import time
from functools import partial

from agent.starter.protocol.reports import End, Lost, PartState
from agent.starter.supervisor.journal import FormerState, RecordedShepherd
from agent.starter.system import proctree

LOST_REASON = "the starter was restarted"
PATIENCE = 10.0
LONGEST_LOOK = 4.0
"""Seconds in which all environments can be read, unless one cannot."""


def clear(former: FormerState, boot: str, host: str, fenced: bool) -> None:
    """Kill the remaining processes of the former starter's parts and set their final states; after a reboot there are none.

    ``fenced``: nor are there any in other groups than that of the former starter, which has been cleared.
    """
    if boot == former.boot:
        marks = {os.fsencode(f"LAVA_ATTEMPT={p.uid}") for p in former.parts.values() if not p.state.over}
        _kill_what_is_left(former.shepherds, set() if fenced else marks, host)
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


def _alive(shepherd: RecordedShepherd) -> bool:
    fields = proctree.stat_fields(shepherd.pid)
    return len(fields) > 19 and int(fields[19]) == shepherd.starttime and fields[0] not in (b"Z", b"X")


def _kill_what_is_left(shepherds: list[RecordedShepherd], marks: set[bytes], host: str) -> None:
    uids = {shepherd.uid for shepherd in shepherds}
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        alive = [shepherd for shepherd in shepherds if _alive(shepherd)]
        marked = {pid: proctree.starttime(pid) for pid in _marked(marks, host, uids) if not _zombie(pid)} if marks else {}
        if not alive and not marked:
            return
        # Shepherds are stopped first and killed last: while they live, init does not inherit their processes.
        for shepherd in alive:
            proctree.send_exactly(shepherd.pid, shepherd.starttime, signal.SIGSTOP)
        proctree.kill_all(partial(_left, {shepherd.pid for shepherd in alive}, marked))
        for shepherd in alive:
            proctree.send_exactly(shepherd.pid, shepherd.starttime, signal.SIGKILL)
        time.sleep(0.01)


def _left(shepherds: set[int], marked: dict[int, int]) -> set[int]:
    """What is below these shepherds and marked processes (with their start times), and the latter, but not the former."""
    still = {pid for pid, start in marked.items() if proctree.starttime(pid) == start}
    return (proctree.below([*shepherds, *still]) | still) - shepherds - {os.getpid()}


def _marked(marks: set[bytes], host: str, uids: set[int]) -> set[int]:
    """As ``proctree.having_in_environment``, found by a child: a process of a user can make who reads of it wait for ever."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, b" ".join(b"%d" % one for one in proctree.having_in_environment(marks, host, uids)))
        finally:
            os._exit(0)
    os.close(write_end)
    ready: list[int] = []
    try:
        ready, _, _ = select.select([read_end], [], [], LONGEST_LOOK)
        return set(map(int, os.read(read_end, 1 << 16).split())) if ready else set()
    finally:
        os.close(read_end)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0 if ready else os.WNOHANG)


def _zombie(pid: int) -> bool:
    fields = proctree.stat_fields(pid)
    return not fields or fields[0] in (b"Z", b"X")

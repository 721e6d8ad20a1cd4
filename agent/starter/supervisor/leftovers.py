"""Ends what a former starter of the same folder left running, before the new one accepts orders.

Rule: a process is identified by boot, pid and start time, or by LAVA_ATTEMPT in its environment; never by its pid alone.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
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
        marked = found_by_child(partial(_marked, marks, host, uids)) if marks else {}
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


def _marked(marks: set[bytes], host: str, uids: set[int]) -> dict[int, int]:
    """The living processes with these marks, and their start times."""
    found = proctree.having_in_environment(marks, host, uids)
    return {pid: start for pid, start in found.items() if not proctree.is_dead(pid)}


def found_by_child(find: Callable[[], dict[int, int]]) -> dict[int, int]:
    """What ``find`` returns in a child: a process of a user can make who reads of it wait for ever. After LONGEST_LOOK what it
    has told until then."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_end)
            for one, start in find().items():
                os.write(write_end, b"%d %d\n" % (one, start))
        finally:
            os._exit(0)
    os.close(write_end)
    said, deadline = b"", time.monotonic() + LONGEST_LOOK
    try:
        while select.select([read_end], [], [], max(0.0, deadline - time.monotonic()))[0] and (
            more := os.read(read_end, 1 << 16)
        ):
            said += more
    finally:
        os.close(read_end)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0 if time.monotonic() < deadline else os.WNOHANG)
    whole = said[: said.rfind(b"\n") + 1]  # not the beginning of a number
    return {int(one): int(start) for one, start in map(bytes.split, whole.splitlines())}

"""Ends what a former starter of the same folder left running, before the new one accepts orders.

Rule: a process is identified by boot, pid and start time, or by LAVA_ATTEMPT in its environment; never by its pid alone.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from agent.starter.protocol.reports import End, Lost, PartState
from agent.starter.supervisor.journal import FormerState, RecordedShepherd
from agent.starter.system import proctree

LOST_REASON = "the starter was restarted"
PATIENCE = 10.0
LONGEST_LOOK = 4.0
"""Seconds in which all environments can be read, unless one cannot."""
PATIENCE_WITH_CHILD = 1.0
"""Seconds for the children that read them to end, once they are killed."""


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
        marked = _all_marked(marks, host, uids) if marks else {}
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


def _all_marked(marks: set[bytes], host: str, uids: set[int]) -> dict[int, int]:
    """The living processes of these users with these marks, and their start times."""
    return found_by_children([partial(_marked, marks, host, pids) for pids in proctree.of_users(uids).values()])


def _marked(marks: set[bytes], host: str, pids: Iterable[int]) -> Iterator[tuple[int, int]]:
    return (one for one in proctree.having_in_environment(marks, host, pids) if not proctree.is_dead(one[0]))


def found_by_children(finds: Iterable[Callable[[], Iterable[tuple[int, int]]]], longest: float = LONGEST_LOOK) -> dict[int, int]:
    """What ``finds`` tell, each in a child of its own, as a process of a user can make who reads of it wait for ever: then what
    was told within ``longest`` seconds counts, and the others, of other users, have told all.
    """
    children: dict[int, int] = {}
    said: dict[int, bytes] = {}
    poll = select.poll()
    try:
        for find in finds:
            read_end, pid = _begin(find)
            children[read_end], said[read_end] = pid, b""
            poll.register(read_end, select.POLLIN)
        deadline, waits = time.monotonic() + longest, set(children)
        while waits and (left := deadline - time.monotonic()) > 0:
            for read_end, _ in poll.poll(left * 1000):
                said[read_end] += (more := os.read(read_end, 1 << 16))
                if not more:
                    poll.unregister(read_end)
                    waits.remove(read_end)
                    os.waitpid(children.pop(read_end), 0)
                    os.close(read_end)
    finally:
        for read_end, pid in children.items():
            os.close(read_end)
            os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + PATIENCE_WITH_CHILD
        for pid in children.values():  # one that cannot be killed yet is reaped later, as what dead shepherds leave
            while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < until:
                time.sleep(0.001)
    whole = [one[: one.rfind(b"\n") + 1] for one in said.values()]  # not the beginning of a number
    return {int(pid): int(start) for one in whole for pid, start in map(bytes.split, one.splitlines())}


def _begin(find: Callable[[], Iterable[tuple[int, int]]]) -> tuple[int, int]:
    """Begin to look in a child; where it tells what it finds, and its pid."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        pid = os.fork()
    except OSError:
        os.close(read_end)
        os.close(write_end)
        raise
    if pid == 0:
        try:
            os.close(read_end)
            for one, start in find():
                os.write(write_end, b"%d %d\n" % (one, start))
        finally:
            os._exit(0)
    os.close(write_end)
    return read_end, pid

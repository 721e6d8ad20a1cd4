"""Finds the descendants of a process, and kills them all.

Rules: stop all that is found and search again until nothing new is found, and only then kill: none can fork away meanwhile.
A number is no process: whoever had it may be gone, and another have it now, so what is found is signalled through a pidfd.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Set

DO_NOT_KNOW = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that say nothing about the process that was looked for."""
_MOST_HELD = 2048
"""Processes that are killed in one go; more are stopped, and killed by the next."""
_HAS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
_MAX_LOOKS = 40


def _read(path: str, sure: bool = False) -> bytes:
    """A file of /proc, b"" where it cannot be read. ``sure``: raise OSError where that does not mean that it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as e:
        if sure and e.errno in DO_NOT_KNOW:
            raise
        return b""
    try:
        data = os.read(fd, 65536)
        while more := os.read(fd, 65536):
            data += more
        return data
    except OSError:
        return b""
    finally:
        os.close(fd)


def stat_fields(pid: int) -> list[bytes]:
    """/proc/PID/stat after the name: [0] state, [1] ppid, [2] pgrp, [3] session, [19] start time; [] if it is gone."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def starttime(pid: int) -> int:
    """Start time in clock ticks since boot; 0 when the process is gone."""
    fields = stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else 0


def is_dead(pid: int) -> bool:
    """Whether a process is gone, or a zombie all of whose threads have ended.

    A process whose first thread has ended is a zombie, too, while others run. Who traces a process keeps it as a zombie for as
    long as he likes.
    """
    fields = stat_fields(pid)
    if not fields or fields[0] == b"X":
        return True
    try:
        return fields[0] == b"Z" and len(os.listdir(f"/proc/{pid}/task")) <= 1
    except OSError as e:
        return e.errno not in DO_NOT_KNOW


def user_of(pid: int) -> int:
    """The real user of a process, -1: it is gone."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return -1


def all_pids() -> list[int]:
    """The pids of all processes that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def children(pid: int, sure: bool = False) -> list[int]:
    """The children of a process, including zombies. ``sure``: raise OSError where /proc cannot be read, for lack of files say."""
    if not _HAS_CHILDREN:
        return [p for p in all_pids() if (f := stat_fields(p)) and int(f[1]) == pid]
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError as e:
        if sure and e.errno in DO_NOT_KNOW:
            raise
        return []
    found: list[int] = []
    for tid in threads:
        found += map(int, _read(f"/proc/{pid}/task/{tid}/children", sure).split())
    return found


def below(roots: Iterable[int]) -> set[int]:
    """All descendants of ``roots``, without the roots themselves."""
    if not _HAS_CHILDREN:
        return _below_by_scan(roots)
    found: set[int] = set()
    to_do = list(roots)
    while to_do:
        for child in children(to_do.pop()):
            if child not in found:
                found.add(child)
                to_do.append(child)
    return found


def alive_below_this(but: Set[int]) -> set[int]:
    """The descendants of this process that are not dead, without these children; OSError where /proc cannot be read."""
    found = set(children(os.getpid(), sure=True)) - but
    found |= below(found) - but if found else found
    return {pid for pid in found if not is_dead(pid)}


def _below_by_scan(roots: Iterable[int]) -> set[int]:
    of: dict[int, list[int]] = {}
    for pid in all_pids():
        if fields := stat_fields(pid):
            of.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    to_do = list(roots)
    while to_do:
        for child in of.get(to_do.pop(), ()):
            if child not in found:
                found.add(child)
                to_do.append(child)
    return found


def send(pid: int, sig: int) -> bool:
    """Send a signal; False when that is not permitted. A process that is gone is no failure."""
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return True


def _has_pidfds() -> bool:
    """Linux 5.3, and a Python that was built for it."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        return False
    return True


_HAS_PIDFDS = _has_pidfds()


def _pidfd(pid: int) -> int:
    """A descriptor of the process that has this number now; -1 where there is none. OSError where none can be had."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1


def _send(pidfd: int, sig: int) -> bool:
    """As ``send``, to the process of a descriptor, whatever has become of its number."""
    try:
        signal.pidfd_send_signal(pidfd, sig)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return True


def send_exactly(pid: int, start: int, sig: int) -> None:
    """Signal the process that has this number if it started then (clock ticks since boot), and nobody else."""
    if not _HAS_PIDFDS:
        if starttime(pid) == start:
            send(pid, sig)
        return
    try:
        pidfd = _pidfd(pid)
    except OSError:
        return
    if pidfd >= 0:
        if starttime(pid) == start:
            _send(pidfd, sig)
        os.close(pidfd)


def kill_all(find: Callable[[], set[int]]) -> bool:
    """Stop and then SIGKILL everything that ``find`` returns. False when this process may not signal some of it.

    What ``find`` returns again after its pidfd was opened is the process of that pidfd, or one that has ended: then nobody gets
    the signal. Zombies are found again until they are reaped, so the caller repeats this until nothing is found.
    """
    if not _HAS_PIDFDS:
        return _kill_by_number(find)
    stopped: dict[int, int] = {}
    allowed = True
    try:
        for _ in range(_MAX_LOOKS):
            if not (new := find() - stopped.keys()):
                break
            opened = _opened(new)
            found = find()
            for pid, pidfd in opened.items():
                if pid in found:
                    _send(pidfd, signal.SIGSTOP)
                    stopped[pid] = pidfd if len(stopped) < _MOST_HELD else -1
                if stopped.get(pid) != pidfd:
                    os.close(pidfd)
            if not opened:
                break
        for pidfd in stopped.values():
            allowed = (pidfd < 0 or _send(pidfd, signal.SIGKILL)) and allowed
    finally:
        for pidfd in stopped.values():
            if pidfd >= 0:
                os.close(pidfd)
    return allowed


def _kill_by_number(find: Callable[[], set[int]]) -> bool:
    """As ``kill_all`` on a kernel without pidfds, where a number may be another process's by the time of the signal."""
    frozen: set[int] = set()
    for _ in range(_MAX_LOOKS):
        new = find() - frozen
        if not new:
            break
        for pid in new:
            send(pid, signal.SIGSTOP)
        frozen |= new
    allowed = True
    for pid in frozen:
        allowed = send(pid, signal.SIGKILL) and allowed
    return allowed


def _opened(pids: set[int]) -> dict[int, int]:
    """The pidfd of each of these processes, of as many as there is room for."""
    found: dict[int, int] = {}
    for pid in pids:
        try:
            pidfd = _pidfd(pid)
        except OSError:
            break
        if pidfd >= 0:
            found[pid] = pidfd
    return found


def signal_groups(pids: Iterable[int], sig: int) -> None:
    """Signal once each process group that has one of ``pids`` in it, except the caller's own.

    One whose parent is neither among them nor the caller is another process by now, and its group is not meant.
    """
    own, pids = os.getpgrp(), {*pids}
    parents = {os.getpid(), *pids}
    groups: set[int] = set()
    for pid in pids:
        if (fields := stat_fields(pid)) and int(fields[1]) in parents:
            groups.add(int(fields[2]))
    for group in groups:
        if group in (own, 0, 1):
            continue
        try:
            os.killpg(group, sig)
        except OSError:
            continue


def of_users(uids: Set[int]) -> dict[int, list[int]]:
    """The processes of each of these users who has any, without this one."""
    found: dict[int, list[int]] = {}
    for pid in all_pids():
        if pid != os.getpid() and (uid := user_of(pid)) in uids:
            found.setdefault(uid, []).append(pid)
    return found


def having_in_environment(marks: set[bytes], host: str, pids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Those of ``pids`` that the starter of ``host`` started with one of ``marks`` (``NAME=value``) in their environment, and
    their start times. May wait for ever for a process whose memory is a file of a server that does not answer.

    Several hosts may be simulated on one machine, and those of a job share its marks: LAVA_HOST tells them apart.
    """
    here = os.fsencode(f"LAVA_HOST={host}")
    for pid in pids:
        start = starttime(pid)  # before its environment: later it may be that of another process with this number
        env = _read(f"/proc/{pid}/environ").split(b"\0")
        if not marks.isdisjoint(env) and (here in env or not any(word.startswith(b"LAVA_HOST=") for word in env)):
            yield pid, start

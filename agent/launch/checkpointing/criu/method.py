"""Method ``criu`` as these programs see it: a generation is written, a restart is checked, the job is started or restored.

Rule: the job runs on while and after it is dumped, unless it ends with the checkpoint; then it stands still from the dump on. A
file that was open for writing is cut to its length of the dump at a restore, if it has grown since; output is appended to.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import stat
import time
from typing import NoReturn

from agent.launch.checkpointing import writing
from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.criu import apart, command, namespaces
from agent.starter.system import proctree

_OPTIONS = ("--ghost-limit", "1G", "--file-locks")
"""Files without a name go into the images up to this size; locks of files do, too."""
_SHM = "shm"
"""Of a generation, the files of /dev/shm."""
START_WITHIN = 60.0
"""Seconds that a checkpoint waits for a job which has just been started."""
_STREAMS = ("1", "2")


def write(asked: Asked) -> tuple[int, int]:
    """(number, bytes) of a new generation.

    CRIU leaves the processes stopped, so that the files which they have open for writing can be measured as they were dumped.
    """
    program = command.find(asked.criu)
    first, own = processes_soon(asked.group)
    stood = {pid for pid in _tree(own) if (fields := proctree.stat_fields(pid)) and fields[0] == b"T"}

    def dump(unfinished: str) -> dict[str, object]:
        words = ["dump", "-t", str(apart.FIRST), "-D", unfinished, "--leave-stopped", *_OPTIONS, *_of_network(asked)]
        code, why = command.apart(lambda: command.run(program, words, asked.timeout), lambda: namespaces.join(first))
        if code:
            raise CheckpointError(f"criu dump: {why}")
        told: dict[str, object] = {
            "kernel": platform.release(),
            "cpu": cpu_flags(),
            "streams": _streams(first),
            "written": _written(_tree(own)),
        }
        copy_shm(f"/proc/{first}/root{namespaces.SHM}", os.path.join(unfinished, _SHM))
        if not asked.kill:
            _continue(own, stood)
        return told

    try:
        return writing.make(asked, "criu", dump)
    except BaseException:
        _continue(own, stood)
        raise


def restart(asked: Asked) -> None:
    """Before the job starts: CheckpointError where CRIU is not here, or cannot restore the newest generation on this host."""
    command.find(asked.criu)
    command.check_namespaces()
    number = writing.newest(asked.folder) if asked.again else 0
    if not number:
        return
    made = writing.check_like(asked, number)
    if why := why_unlike(made, platform.release(), cpu_flags()):
        raise CheckpointError(f"checkpoint generation {number} was made {why}")


def run(asked: Asked, argv: list[str]) -> NoReturn:
    """Become the job's process: restored from the newest generation if it starts again and there is one, else new."""
    number = writing.newest(asked.folder) if asked.again else 0
    begin = (lambda: _restore(asked, number)) if number else (lambda: apart.start(argv))
    apart.live(begin, asked.network)


def why_unlike(made: dict[str, object], kernel: str, flags: str) -> str:
    """Why a process of a manifest's host does not run on this one, "" where it may: an older kernel, a CPU that lacks a thing."""
    there = str(made.get("kernel", ""))
    if _release(kernel) < _release(there):
        return f"on kernel {there}, which is newer than {kernel} here"
    lacks = sorted(set(str(made.get("cpu", "")).split()) - set(flags.split()))
    return f"on a CPU with {' '.join(lacks[:5])}, which this one lacks" if lacks else ""


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.replace("-", ".").split(".")[:2] if word.isdigit())


def cpu_flags() -> str:
    """What the processor can do, in the kernel's words; "" where it does not say."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return " ".join(sorted(value.split()))
    return ""


def processes_soon(group: int) -> tuple[int, int]:
    """The same; a job that has just begun to start, or to be restored, gets some time."""
    until = time.monotonic() + START_WITHIN
    while True:
        try:
            return processes(group)
        except CheckpointError:
            if time.monotonic() > until or proctree.stat_fields(group)[:1] in ([], [b"Z"]):
                raise
        time.sleep(0.05)


def processes(group: int) -> tuple[int, int]:
    """The first process of the job's namespaces and the job's own; CheckpointError: they are not there (yet)."""
    for first in proctree.children(group) if group else ():
        for own in proctree.children(first) if _name(first) == apart.READY else ():
            if _pid_inside(own) == apart.FIRST:
                return first, own
    raise CheckpointError("the job has no process yet that criu could dump")


def _name(pid: int) -> str:
    """Its short name, "": it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
        return file.read().rstrip("\n")
    return ""


def _pid_inside(pid: int) -> int:
    """Its pid in its own namespace, 0: it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("NSpid:"):
                return int(line.split()[-1])
    return 0


def _streams(first: int) -> dict[str, str]:
    """Where the job's standard output and error go, as its first process has them: a script may have others (``exec > log``)."""
    found = {}
    for name in _STREAMS:
        with contextlib.suppress(OSError):
            found[name] = os.readlink(f"/proc/{first}/fd/{name}")
    return found


def _restore(asked: Asked, number: int) -> int:
    """The job's own process as it was: its pid. It writes its output where this attempt's goes."""
    path = os.path.join(asked.folder, f"gen-{number}")
    made = writing.check_like(asked, number)
    streams = made.get("streams")
    inherited: dict[str, int] = {}
    for name, target in streams.items() if isinstance(streams, dict) else ():
        if name in _STREAMS and target.startswith("/") and target != os.devnull:
            inherited.setdefault(target, os.dup(int(name)))
    _set_back(made.get("written"), inherited)
    copy_shm(os.path.join(path, _SHM), namespaces.SHM)
    words = ["restore", "-D", path, "-d", "--file-locks", *_of_network(asked)]
    for target, fd in inherited.items():
        words += ["--inherit-fd", f"fd[{fd}]:{target[1:]}"]
    code, why = command.run(command.find(asked.criu), words, asked.timeout, tuple(inherited.values()))
    for fd in inherited.values():
        os.close(fd)
    if code:
        raise CheckpointError(f"generation {number} cannot be restored: {why}")
    os.kill(-1, signal.SIGCONT)  # it may have been dumped while it was suspended
    return apart.FIRST


def copy_shm(source: str, target: str) -> None:
    """Folders, plain files, and links as they are, wherever they point; CheckpointError: which of them cannot be copied.

    Sockets are of the images, as CRIU binds them again; pipes and devices are left out.
    """
    try:
        shutil.copytree(source, target, symlinks=True, ignore=_others, dirs_exist_ok=True)
    except shutil.Error as e:
        name, _, why = e.args[0][0]
        raise CheckpointError(f"{name}: {why}") from None


def _others(folder: str, names: list[str]) -> set[str]:
    """What is neither folder, link nor plain file."""
    modes = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    return {name for name, mode in modes.items() if not (stat.S_ISDIR(mode) or stat.S_ISLNK(mode) or stat.S_ISREG(mode))}


def _of_network(asked: Asked) -> tuple[str, ...]:
    """In a network of its own a job's connections go on, and nobody comes in between."""
    return ("--tcp-established", "--network-lock", "skip") if asked.network else ()


def _tree(own: int) -> list[int]:
    return [own, *proctree.below([own])]


def _written(pids: list[int]) -> dict[str, int]:
    """Path and size of each file with a name that one of the processes may write to."""
    found: dict[str, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                mode, facts = os.lstat(path).st_mode, os.stat(path)
                if mode & stat.S_IWUSR and stat.S_ISREG(facts.st_mode) and facts.st_nlink:
                    found[os.readlink(path)] = facts.st_size
    return found


def _set_back(written: object, inherited: dict[str, int]) -> None:
    """Files that were open for writing get the length of then. CRIU says it of one that is gone or shorter."""
    for name, size in written.items() if isinstance(written, dict) else ():
        with contextlib.suppress(FileNotFoundError):
            if name not in inherited and os.stat(name).st_size > size:
                os.truncate(name, size)


def _continue(own: int, stood: set[int]) -> None:
    """The processes go on, but for those that stood still before the dump."""
    for pid in _tree(own):
        if pid not in stood:
            proctree.send(pid, signal.SIGCONT)

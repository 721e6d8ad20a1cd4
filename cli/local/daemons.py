"""The daemons of a cluster on one machine: started in sessions of their own, found by their pid files, ended with their jobs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from cli.local.folder import ROOT, Folder


class DaemonFailed(Exception):
    """Why a daemon did not come up, in one line."""


def find_pid(folder: Folder, name: str) -> int:
    """The process id in a pid file, if that process is alive and belongs to this cluster, else 0."""
    try:
        pid = int(folder.pid_file(name).read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, ValueError, IndexError):
        return 0
    # a starter shows its own title instead of its command line
    titled = words[0].decode(errors="replace") == f"lava-{name.replace('-', ' ', 1)}"
    path = str(folder.path).encode()
    ours = _logs_in(pid, folder) if titled else any(f"{folder.path}/".encode() in word or word.endswith(path) for word in words)
    return pid if ours and state != "Z" else 0


def _logs_in(pid: int, folder: Folder) -> bool:
    """Whether a starter is this cluster's: others have hosts of the same names."""
    try:
        return os.readlink(f"/proc/{pid}/fd/2").startswith(f"{folder.log}/")
    except OSError:  # another user's
        return True


def start(folder: Folder, name: str, module: str, words: list[str]) -> None:
    """Start ``main`` of a module in a session of its own, output to its log; returns once its pid file names it.

    Raises DaemonFailed after 60 seconds, or when it ends before.
    """
    log = folder.log / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CODE.format(root=str(ROOT), module=module), *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd="/",
            start_new_session=True,
            env=_environment(),
        )
    deadline = time.monotonic() + 60
    while find_pid(folder, name) != process.pid:
        if process.poll() is not None:
            raise DaemonFailed(f"{name} did not start: {last_line(log)}")
        if time.monotonic() > deadline:
            process.kill()
            raise DaemonFailed(f"{name} did not come up within 60 s; see {log}")
        time.sleep(0.01)


_CODE = "import sys; sys.path.insert(0, {root!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"


def _environment() -> dict[str, str]:
    """The few variables that daemons get: nothing of the caller's job or site leaks into them."""
    kept = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "LAVA_NATIVE",
        "LAVA_TEST_SLOW",
        "LAVA_SIM_GPU_FAULTS",
        "LAVA_SIM_GPU_MIG",
        "LAVA_SIM_GPU_MODELS",
        "LAVA_SIM_GPU_NUMA",
        "LAVA_SIM_TOPOLOGY",
    )
    return {name: os.environ[name] for name in kept if name in os.environ}


def last_line(log: Path) -> str:
    """What a daemon said last in its log."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else f"see {log}"


def children(pids: Iterable[int]) -> set[int]:
    """The processes and all their descendants, from one scan of /proc."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path(f"/proc/{entry}/stat").read_text()
                parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found: set[int] = set()
    waiting = [pid for pid in pids if pid]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += parents.get(pid, [])
    return found


def begun(pids: Iterable[int]) -> dict[int, int]:
    """When each of the processes that are there was started, in clock ticks since the machine was: with its number, what tells it
    from another one that gets the number after its end.
    """
    return {pid: at for pid in pids if pid and (at := _begun(pid))}


def end(processes: Mapping[int, int], patience: float) -> set[int]:
    """SIGTERM to those that ``begun`` has told of, after ``patience`` seconds SIGKILL; what is left of them 5 seconds later."""
    left = {pid for pid, at in processes.items() if _begun(pid) == at}
    for sign, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, sign)
        deadline = time.monotonic() + wait
        while (left := {pid for pid in left if _begun(pid) == processes[pid]}) and time.monotonic() < deadline:
            time.sleep(0.02)
        if not left:
            break
    return left


def _begun(pid: int) -> int:
    """0: it has ended, if perhaps nobody has asked how."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return 0 if fields[0] == "Z" else int(fields[19])
    except (OSError, IndexError):
        return 0

"""``python -I -S …/agent/starter/__main__.py --host NAME --dir SPOOLDIR --socket PATH --pidfile PATH [--log FILE]``.

Rule: standard library only; nothing on stdout; one starter for each spool folder.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import os
import signal
import sys

if __package__ in (None, ""):
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def main(argv: list[str] | None = None) -> int:
    """Run a starter until SIGTERM; 1 when another one has the folder."""
    from agent.starter.supervisor import starter
    from agent.starter.supervisor.pool import Home
    from agent.starter.system import cgroup, fence, folders, kernel, rlimits

    options = _options(argv)
    os.umask(0o022)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # what whoever started it had blocked, its jobs would have blocked, too
    with contextlib.suppress(PermissionError):
        os.setsid()
    try:
        folders.make_own(os.path.dirname(options.socket))
        folders.make_own(options.dir, 0o700)
    except (folders.NotOwn, OSError) as e:
        sys.stderr.write(f"lava-starter: {e}\n")
        return 1
    kernel.find_title()
    if holder := _take(options.dir):
        sys.stderr.write(f"lava-starter: {options.dir} is served by process {holder} already\n")
        return 1
    try:
        _redirect(options.log)
    except OSError as e:
        sys.stderr.write(f"lava-starter: {e}\n")
        return 1
    kernel.become_subreaper()
    kernel.set_name("lava-starter")
    kernel.set_title(f"lava-starter {options.host}")
    os.chdir("/")
    rlimits.raise_open_files()
    group = fence.enclose(options.dir)
    places = cgroup.find()
    try:
        one = starter.Starter(Home(options.host, places, options.oom_score_adj, group.again), options.dir, options.socket)
    except OSError as e:
        starter.log(f"cannot begin: {e}")
        return 1
    _write_pid(options.pidfile)
    starter.log(f"serves {options.host} as process {os.getpid()}; {places.says()}")
    gc.freeze()
    one.run()
    fence.leave(group)
    starter.log("ends")
    with contextlib.suppress(OSError):
        os.unlink(options.pidfile)
    return 0


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lava-starter")
    parser.add_argument("--host", required=True)
    parser.add_argument("--dir", required=True, type=os.path.abspath)
    parser.add_argument("--socket", required=True, type=os.path.abspath)
    parser.add_argument("--pidfile", required=True, type=os.path.abspath)
    parser.add_argument("--log", type=os.path.abspath)
    parser.add_argument("--oom-score-adj", type=int, default=0, help="at least that of jobs (proc(5)), -1000 to 1000")
    return parser.parse_args(argv)


def _take(folder: str) -> str:
    """Have the folder until this process ends: ""; else the process that has it, as text."""
    lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return os.read(lock, 32).decode("ascii", "replace").strip() or "?"
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return ""


def _redirect(log: str | None) -> None:
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)
    if log:
        # a link that somebody put there is not followed
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
        os.dup2(fd, 2)
        os.close(fd)


def _write_pid(path: str) -> None:
    new = f"{path}.{os.getpid()}"
    with open(new, "w", encoding="ascii") as f:
        f.write(f"{os.getpid()}\n")
    os.rename(new, path)


if __name__ == "__main__":
    sys.exit(main())

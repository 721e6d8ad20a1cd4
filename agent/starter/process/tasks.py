"""Starts one process of a part: by vfork where possible, by fork where limits or niceness need code in the child.

Rule: the caller has already changed user, working folder and umask; no files are opened here.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import termios
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from agent.starter.system import rlimits

DEFAULT_PATH = "/bin:/usr/bin:/sbin:/usr/sbin"

_fork_exec: Callable[..., int] | None = None
try:
    from _posixsubprocess import fork_exec as _fork_exec
except ImportError:  # another Python: every start takes the fork path
    pass

# Python sets these to "ignore" for itself, and ignoring would be inherited through exec.
_TO_DEFAULT = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]


class ExecError(OSError):
    """The program could not be started; ``errno`` says why."""


class _ErrorPipe:
    """The pipe to which a vforked child writes why exec failed; one is enough, as vfork returns only after exec."""

    read_end = -1
    write_end = -1

    @classmethod
    def open(cls) -> None:
        if cls.read_end < 0:
            cls.read_end, cls.write_end = os.pipe2(os.O_CLOEXEC)
            fcntl.fcntl(cls.read_end, fcntl.F_SETFL, os.O_NONBLOCK)

    @classmethod
    def take(cls) -> bytes:
        try:
            return os.read(cls.read_end, 4096)
        except BlockingIOError:
            return b""


def candidates(name: str, path: str | None) -> tuple[bytes, ...]:
    """The paths that a shell would try for this command, given PATH (None: DEFAULT_PATH)."""
    if "/" in name:
        return (os.fsencode(name),)
    folders = (DEFAULT_PATH if path is None else path).split(":")
    return tuple(os.fsencode(os.path.join(folder or ".", name)) for folder in folders)


def start(
    argv: Sequence[str],
    programs: tuple[bytes, ...],
    env: list[bytes],
    fds: tuple[int, int, int],
    keep: Sequence[int] = (),
    limits: rlimits.Limits = rlimits.NO_CHANGE,
    nice: int = 0,
    terminal: int = -1,
) -> int:
    """Start ``argv`` in a new session with ``fds`` as 0, 1, 2 and ``keep`` inherited; returns its pid, or raises ExecError.

    ``terminal`` becomes the session's controlling terminal.
    """
    global _fork_exec
    args = [os.fsencode(a) for a in argv]
    code: int | None = None
    if _fork_exec is not None and not nice and not limits.in_child and terminal < 0:
        try:
            code = _vfork(args, programs, env, fds, keep, limits)
        except TypeError:  # this Python's fork_exec takes other arguments
            _fork_exec = None
    if code is None:
        code = _fork(_Wanted(args, programs, env, fds, keep, limits.wanted, nice, terminal))
    if code >= 0:
        return code
    if -code == errno.ENOEXEC and args[0] != b"/bin/sh":
        script = next((p for p in programs if os.path.exists(p)), programs[0])
        return start(["/bin/sh", os.fsdecode(script), *argv[1:]], (b"/bin/sh",), env, fds, keep, limits, nice, terminal)
    if -code == errno.EACCES and len(programs) > 1 and not any(map(os.path.exists, programs)):
        code = -errno.ENOENT  # a folder of PATH that the user cannot search has no program for them
    raise ExecError(-code, os.strerror(-code))


def become(argv: list[str]) -> NoReturn:
    """Run ``argv`` in this process's place; where that cannot be, say so as a shell does, and exit with its code."""
    try:
        os.execvp(argv[0], argv)
    except (OSError, ValueError) as e:
        there = "/" in argv[0] or any(os.path.exists(os.path.join(folder, argv[0])) for folder in os.get_exec_path())
        if isinstance(e, PermissionError) and not there:  # a folder of PATH that the user cannot search has no program for them
            e = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        code, line = as_a_shell_says(argv[0], e)
        os.write(2, line)
        os._exit(code)


def start_setup(command: str, env: dict[str, bytes], say: int = -1) -> int:
    """Start a pre- or post-execution command by /bin/sh, with a default PATH and /dev/null as files; its pid, or OSError.

    ``say``: a file in which lava's own programs among its commands say why they fail (LAVA_SAY).
    """
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    try:
        variables = {**env, "PATH": b"PATH=/bin:/usr/bin:/sbin:/usr/sbin"}
        argv, keep = ["/bin/sh", "-c", command], (say,) if say >= 0 else ()
        if keep:
            variables["LAVA_SAY"] = b"LAVA_SAY=%d" % say
        return start(argv, (b"/bin/sh",), list(variables.values()), (null, null, null), keep, rlimits.clamp({}))
    finally:
        os.close(null)


def as_a_shell_says(name: str, e: Exception) -> tuple[int, bytes]:
    """(exit code, line on standard error) that a shell gives for a command that cannot be started."""
    missing = isinstance(e, OSError) and e.errno in (errno.ENOENT, errno.ENOTDIR)
    why = "command not found" if missing and "/" not in name else (getattr(e, "strerror", None) or str(e))
    return 127 if missing else 126, f"{name}: {why}\n".encode("utf-8", "surrogateescape")


def _vfork(
    args: list[bytes],
    programs: tuple[bytes, ...],
    env: list[bytes],
    fds: tuple[int, int, int],
    keep: Sequence[int],
    limits: rlimits.Limits,
) -> int:
    """pid, or minus errno."""
    assert _fork_exec is not None
    _ErrorPipe.open()
    rlimits.apply(limits.wanted)
    try:
        # fmt: off
        pid = _fork_exec(
            args, programs, False, tuple(sorted({*keep, _ErrorPipe.write_end})), None, env,
            fds[0], -1, -1, fds[1], -1, fds[2], _ErrorPipe.read_end, _ErrorPipe.write_end,
            True, True, -1, None, None, None, -1, None, True,
        )
        # fmt: on
    finally:
        rlimits.apply(limits.before)
    error = _ErrorPipe.take()
    if not error:
        return pid
    os.waitpid(pid, 0)
    return -(int(error.split(b":")[1], 16) or errno.ENOENT)


class _Wanted(NamedTuple):
    """What a forked child makes of itself; as the arguments of ``start``."""

    args: list[bytes]
    programs: tuple[bytes, ...]
    env: list[bytes]
    fds: tuple[int, int, int]
    keep: Sequence[int]
    limits: list[rlimits.Limit]
    nice: int
    terminal: int


def _fork(wanted: _Wanted) -> int:
    """pid, or minus errno."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _child(wanted, write_end)
    os.close(write_end)
    error = os.read(read_end, 16)
    os.close(read_end)
    if not error:
        return pid
    os.waitpid(pid, 0)
    return -int(error)


def _child(wanted: _Wanted, write_end: int) -> NoReturn:
    args, programs, env, fds, keep, limits, nice, terminal = wanted
    code = errno.ENOENT
    try:
        os.setsid()
        if terminal >= 0:
            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for sig in _TO_DEFAULT:
            signal.signal(sig, signal.SIG_DFL)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        for fd in keep:
            os.set_inheritable(fd, True)
        if nice:
            _renice(nice)
        variables = dict(v.partition(b"=")[::2] for v in env)
        rlimits.apply(limits)
        for program in programs:
            try:
                os.execve(program, args, variables)
            except OSError as e:
                if e.errno not in (errno.ENOENT, errno.ENOTDIR):
                    code = e.errno or code
    except MemoryError:
        code = errno.ENOMEM
    except OSError as e:
        code = e.errno or code
    finally:
        os.write(write_end, str(code).encode())
        os._exit(127)


def _renice(nice: int) -> None:
    try:
        os.nice(nice)
    except OSError:  # a lower niceness is not permitted: it runs with the shepherd's
        pass

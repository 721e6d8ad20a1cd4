"""Starting one task of a part, or a command around the tasks: environment, files and limits put together.

Rule: what cannot be started has ended, with the status and the line that a shell would give.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from agent.starter.mpi.gang import Gang, TaskFiles
from agent.starter.part import native_parts, native_tasks
from agent.starter.part.generations import HOLDERS
from agent.starter.process import tasks as processes
from agent.starter.process.account import Task
from agent.starter.process.spec import Spec
from agent.starter.protocol.part import TaskSpec
from agent.starter.system import rlimits, scratch
from agent.starter.system.binding import bound, masks
from agent.starter.system.stdio import Refused, write_all

CANNOT = 126
"""Exit code of a task whose program is there but could not be started."""
MOST_SAID = 2000
"""Bytes."""
LATE = 98
"""Exit code of a pre-execution command that took too long (LSF's)."""
HOSTS_ONLY = "LAVA_HOST_POST_ONLY"
"""Set where of what follows a job only that of its hosts is to run: the attempt was lost, is stale, or runs again."""
ABORT = 99
"""LSB_EXIT_PRE_ABORT: a pre-execution command that exits with this code ends the job, which else goes back to PEND."""


class Surroundings(NamedTuple):
    """What a part gives to each of its tasks."""

    fds: tuple[int, int, int]
    """The files that become 0, 1 and 2."""
    limits: rlimits.Limits
    tty: int
    """The pseudo-terminal that becomes the controlling one, -1 without."""
    gang: Gang | None


class Said:
    """The file in which lava's own programs before the tasks say why they fail."""

    def __init__(self) -> None:
        self._fd = -1

    def open(self) -> int:
        """Make it, for a command that starts now."""
        self._fd = os.memfd_create("said")
        return self._fd

    def take(self) -> str:
        """What was said, "" for nothing; it is closed."""
        if self._fd < 0:
            return ""
        said = os.pread(self._fd, MOST_SAID, 0).decode("utf-8", "replace").strip()
        os.close(self._fd)
        self._fd = -1
        return said


@contextlib.contextmanager
def behind_output(spec: Spec) -> Iterator[int]:
    """The file in which lava's own programs after the tasks say why they fail: the user's output, -1 where there is none.

    Output that is collected for the user's file is delivered by then, or about to be.
    """
    path = spec.env.get("LSB_OUTPUTFILE", b"").partition(b"=")[2] or os.fsencode(
        spec.part.stdout.path if spec.part.stdout else ""
    )
    fd = -1
    if path:
        with contextlib.suppress(OSError, ValueError):  # a named pipe may have nobody who reads it any more
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        if fd >= 0:
            os.close(fd)


def begin_together(tasks: Sequence[Task], asked: Sequence[TaskSpec], spec: Spec, around: Surroundings) -> list[TaskFiles | None]:
    """Start those that native code starts, which have a pid then, and return what each has of its own, None: nothing yet.

    Those are tasks of a gang that differ by their variables, output files and binding.
    """
    gang, limits = around.gang, around.limits
    if gang is None or around.tty >= 0 or native_parts.library() is None or not all(map(_is_plain, asked)):
        return [None] * len(asked)
    bindings = [masks(to) if (to := one.bind or spec.part.bind) else None for one in asked]
    if any(made is None and (one.bind or spec.part.bind) for one, made in zip(asked, bindings, strict=True)):
        return [None] * len(asked)
    argv = ("",) if spec.part.argv is None else spec.part.argv
    files = [gang.files_of(one) for one in asked]
    wanted = [
        native_tasks.Asked(_encoded({**own.variables, **one.env}), own.fds, own.keep[0] if own.keep else -1, binding)
        for own, one, binding in zip(files, asked, bindings, strict=True)
    ]
    programs = processes.candidates(argv[0], spec.path)
    started = native_tasks.start(argv, programs, list(spec.env.values()), limits, spec.part.nice, wanted)
    for task, own, (pid, said) in zip(tasks, files, started, strict=True):
        task.pid = pid
        if said:
            write_all(own.fds[2], said)
    return list(files)


def _is_plain(asked: TaskSpec) -> bool:
    return not (asked.argv or asked.cwd or asked.scratch or asked.rlimits or "PATH" in asked.env)


def _encoded(variables: Mapping[str, str]) -> list[bytes]:
    return [os.fsencode(f"{name}={value}") for name, value in variables.items()]


def begin(task: Task, asked: TaskSpec, spec: Spec, around: Surroundings, files: TaskFiles | None = None) -> None:
    """Start a task: afterwards ``task`` has a pid, or has ended already. ``files``: what ``begin_together`` found for it."""
    env, path, extra = spec.env, spec.path, asked.env
    fds, limits = around.fds, around.limits
    keep: list[int] = []
    if around.gang:
        more, fds, keep = files or around.gang.files_of(asked)
        extra = {**more, **extra}
    if extra:
        env = {**env, **{name: os.fsencode(f"{name}={value}") for name, value in extra.items()}}
        path = extra.get("PATH", path)
    argv = asked.argv or (("",) if spec.part.argv is None else spec.part.argv)
    if asked.rlimits:
        limits = rlimits.clamp(asked.rlimits)
    if asked.scratch and (why := scratch.make(asked.scratch)):
        return _cannot(task, fds[2], asked.scratch, why)
    if asked.cwd and (why := _why_not_entered(asked.cwd)):
        return _cannot(task, fds[2], asked.cwd, why)
    try:
        programs = processes.candidates(argv[0], path)
        with bound(asked.bind or spec.part.bind) as said:
            task.pid = processes.start(argv, programs, list(env.values()), fds, keep, limits, spec.part.nice, around.tty)
        if said:
            write_all(fds[2], said)
    except (OSError, ValueError) as e:
        code, line = processes.as_a_shell_says(argv[0], e)
        write_all(fds[2], line)
        task.ended((0, code << 8, 0.0, 0.0, 0))


def _cannot(task: Task, fd: int, what: str, why: str) -> None:
    write_all(fd, f"{what}: {why}\n".encode(errors="replace"))
    task.ended((0, CANNOT << 8, 0.0, 0.0, 0))


def _why_not_entered(folder: str) -> str:
    """Why a task's own folder cannot be entered, "" when it is the current one now."""
    try:
        os.chdir(folder)
    except (OSError, ValueError) as e:
        return getattr(e, "strerror", None) or str(e)
    return ""


def as_refused(e: Exception, spec: Spec) -> Refused:
    """An error before the start, as the reason why the part is refused."""
    if isinstance(e, Refused):
        return e
    if isinstance(e, OSError):
        return Refused("nomem", f"part {spec.title}: {e.strerror or e}")
    return Refused("bad", f"part {spec.uid}: {type(e).__name__}: {e}")


def only_hosts(wanted: bool) -> dict[str, str]:
    """The variable that says whether this is ``wanted``, whatever the job's user has set."""
    return {HOSTS_ONLY: "1" if wanted else ""}


def begin_setup(spec: Spec, command: str, more: dict[str, str], say: int = -1) -> int:
    """Start a command before or after the tasks: its pid. ``say``: the file in which it may say why it fails."""
    try:
        found = processes.start_setup(command, {**spec.env, **{k: os.fsencode(f"{k}={v}") for k, v in more.items()}}, say)
    except OSError as e:
        raise Refused("pre_exec", f"/bin/sh: {e.strerror}") from None
    spec.env.pop(HOLDERS, None)
    return found


def why_setup_failed(spec: Spec, status: int, said: str) -> Refused:
    """Why the part is refused after a pre-execution command with this wait status, which said so itself or not ("")."""
    code = os.waitstatus_to_exitcode(status)
    if code == ABORT:
        return Refused("pre_abort", said or f"the pre-execution command ended the job (exit code {ABORT})")
    if said:  # it ran too long, or it is lava's own program that makes a restart ready
        return Refused("pre_exec" if code == LATE else "restart", said)
    how = f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}"
    return Refused("pre_exec", f"the pre-execution command {how}: {spec.part.pre_exec}")

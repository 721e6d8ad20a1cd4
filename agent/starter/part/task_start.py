"""Starting one task of a part, or a command around the tasks: environment, files and limits put together.

Rule: what cannot be started has ended, with the status and the line that a shell would give.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from agent.starter.mpi.gang import Gang
from agent.starter.process import tasks
from agent.starter.process.account import Task
from agent.starter.process.spec import Spec
from agent.starter.protocol.part import TaskSpec
from agent.starter.system import rlimits, scratch
from agent.starter.system.binding import bound
from agent.starter.system.stdio import Refused, write_all

CANNOT = 126
"""Exit code of a task whose program is there but could not be started."""
MOST_SAID = 2000
"""Bytes."""
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


def begin(task: Task, asked: TaskSpec, spec: Spec, around: Surroundings) -> None:
    """Start a task: afterwards ``task`` has a pid, or has ended already."""
    env, path, extra = spec.env, spec.path, asked.env
    fds, limits = around.fds, around.limits
    keep: list[int] = []
    if around.gang:
        more, fds, keep = around.gang.files_of(asked)
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
        programs = tasks.candidates(argv[0], path)
        with bound(asked.bind or spec.part.bind) as said:
            task.pid = tasks.start(argv, programs, list(env.values()), fds, keep, limits, spec.part.nice, around.tty)
        if said:
            write_all(fds[2], said)
    except (OSError, ValueError) as e:
        code, line = tasks.as_a_shell_says(argv[0], e)
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


def begin_setup(spec: Spec, command: str, more: dict[str, str], say: int = -1) -> int:
    """Start a command before or after the tasks: its pid. ``say``: the file in which it may say why it fails."""
    try:
        return tasks.start_setup(command, {**spec.env, **{k: os.fsencode(f"{k}={v}") for k, v in more.items()}}, say)
    except OSError as e:
        raise Refused("pre_exec", f"/bin/sh: {e.strerror}") from None


def why_setup_failed(spec: Spec, status: int, said: str) -> Refused:
    """Why the part is refused after a pre-execution command with this wait status, which said so itself or not ("")."""
    code = os.waitstatus_to_exitcode(status)
    if said:
        return Refused("pre_exec", said)
    if code == ABORT:
        return Refused("pre_abort", f"the pre-execution command ended the job (exit code {ABORT})")
    how = f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}"
    return Refused("pre_exec", f"the pre-execution command {how}: {spec.part.pre_exec}")

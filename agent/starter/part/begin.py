"""Starting one task of a part, or a command around them: environment, files and limits put together.

Rule: what cannot be started has ended, with the status and the line that a shell would give.
"""

from __future__ import annotations

import os
from typing import Any

from agent.starter.mpi.gang import Gang
from agent.starter.process import tasks
from agent.starter.process.account import Task
from agent.starter.process.spec import Spec
from agent.starter.system import rlimits, scratch
from agent.starter.system.binding import bound
from agent.starter.system.stdio import Refused, write_all

CANNOT = 126
"""Exit code of a task that could not be started for another reason than that its program is not there."""
ABORT = 99
"""LSB_EXIT_PRE_ABORT: a pre-execution command that ends so ends the job, instead of keeping it waiting."""


def begin(
    task: Task,
    of: dict[str, Any],
    spec: Spec,
    fds: tuple[int, int, int],
    gang: Gang | None,
    limits: rlimits.Limits,
    terminal: int = -1,
) -> None:
    """Start it: ``task`` has a pid then, or has ended. ``of``: its entry in ``tasks``; ``fds``: the part's files."""
    extra = of.get("env") or {}
    env, path = spec.env, spec.path
    keep: list[int] = []
    if gang:
        more, fds, keep = gang.files_of(of)
        extra = {**more, **extra}
    if extra:
        env = {**env, **{k: os.fsencode(f"{k}={v}") for k, v in extra.items()}}
        path = extra.get("PATH", path)
    argv = of.get("argv") or spec.get("argv", [""])
    if of.get("rlimits"):
        limits = rlimits.clamp(of["rlimits"])
    if (own := of.get("scratch") or "") and (why := scratch.make(own)):
        return _cannot(task, fds[2], own, why)
    if (folder := of.get("cwd")) and (why := _enter(folder)):
        return _cannot(task, fds[2], folder, why)
    try:
        programs = tasks.candidates(argv[0], path)
        with bound(of.get("bind") or spec.get("bind")) as said:
            nice = int(spec.get("nice", 0))
            task.pid = tasks.start(argv, programs, list(env.values()), fds, keep, limits, nice, terminal)
        if said:
            write_all(fds[2], said)
    except (OSError, ValueError) as e:
        code, line = tasks.as_a_shell_says(argv[0], e)
        write_all(fds[2], line)
        task.ended((0, code << 8, 0.0, 0.0, 0))


def _cannot(task: Task, fd: int, what: str, why: str) -> None:
    write_all(fd, f"{what}: {why}\n".encode(errors="replace"))
    task.ended((0, CANNOT << 8, 0.0, 0.0, 0))


def _enter(folder: str) -> str:
    """Why a task's own folder cannot be entered, "" when it is the current one now."""
    try:
        os.chdir(folder)
    except (OSError, ValueError) as e:
        return getattr(e, "strerror", None) or str(e)
    return ""


def as_refused(e: Exception, spec: Spec) -> Refused:
    """The refusal that an error before the start means."""
    if isinstance(e, Refused):
        return e
    if isinstance(e, OSError):
        return Refused("nomem", f"part {spec.get('title', spec.uid)}: {e.strerror or e}")
    return Refused("bad", f"part {spec.uid}: {type(e).__name__}: {e}")


def begin_setup(spec: Spec, command: str, more: dict[str, str]) -> int:
    """Start a command before or after the tasks: its pid."""
    try:
        return tasks.start_setup(command, {**spec.env, **{k: os.fsencode(f"{k}={v}") for k, v in more.items()}})
    except OSError as e:
        raise Refused("pre_exec", f"/bin/sh: {e.strerror}") from None


def why_setup_failed(spec: Spec, status: int) -> Refused:
    """The refusal after a pre-execution command that ended with this wait status."""
    code = os.waitstatus_to_exitcode(status)
    if code == ABORT:
        return Refused("pre_abort", f"the pre-execution command ended the job (exit code {ABORT})")
    how = f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}"
    return Refused("pre_exec", f"the pre-execution command {how}: {spec.get('pre_exec')}")

"""Parts that run commands of the queue and of hosts around a job as another user than the job's (``sudoers``).

Rule: nothing that the job's user chose is obeyed there: neither variables of the submission, nor a folder, a file or a program.
What lava itself says of the job is in variables, as for the job.
"""

from __future__ import annotations

import os

from agent.launch import environ
from agent.launch.build import Compiled
from agent.launch.outputs import DISCARDED, show
from agent.launch.prepost import commands
from agent.launch.site import Site, User
from agent.starter.part.task_start import ABORT
from agent.starter.protocol.part import NO_RANK, NOTHING, PartSpec, TaskSpec
from agent.starter.protocol.reports import End
from proto import agent_pb2 as pb

PATH = "/bin:/usr/bin:/sbin:/usr/sbin"
FOLDER = "/tmp"
"""Where they run, as in LSF."""
_SECRET = "LAVA_TOKEN"
"""Of no use to them, and the user's."""


def before(uid: str, order: pb.Order, made: Compiled, site: Site) -> PartSpec | None:
    """The part that runs what is to run before the job's part on this host; None: there is nothing."""
    line = commands.pre_exec(_lines(order, made).before, seconds=made.text.pre_timeout)
    return _part(uid, order, made, site, line, "pre-execution", {}) if line else None


def after(uid: str, order: pb.Order, made: Compiled, site: Site, status: int, *, hosts_only: bool = False) -> PartSpec | None:
    """The same for what is to run after it. ``status``: the wait status of the job's part, 0 where it has none.

    ``hosts_only``: without what the queue runs.
    """
    lines = tuple(made.text.host_post_exec) if hosts_only else _lines(order, made).after
    line = commands.post_exec(lines, seconds=made.text.post_timeout)
    return _part(uid, order, made, site, line, "post-execution", {"LSB_JOBEXIT_STAT": str(status)}) if line else None


def _lines(order: pb.Order, made: Compiled) -> commands.Around:
    return commands.of_site(made.text, order.start.place) if made.exec_user is not None else commands.Around((), ())


def is_needed(order: pb.Order, made: Compiled) -> bool:
    """Whether there is anything to run as another user."""
    return made.exec_user is not None and any(map(any, _lines(order, made)))


def why_failed(end: End | None, reason: str) -> tuple[str, str]:
    """(Code, one line) of the refusal of a job whose pre-execution has ended other than well. ``reason``: why it has no end."""
    if end is None:
        return "pre_exec", reason or "it is not known how the pre-execution command ended"
    code, lines = os.waitstatus_to_exitcode(end.status), end.note.splitlines()
    how = f"exited with code {code}" if code >= 0 else f"was killed by signal {-code}"
    said = f"the pre-execution command {how}" + (f": {lines[-1]}" if lines else "")
    return ("pre_abort" if code == ABORT else "pre_exec"), said


def _part(uid: str, order: pb.Order, made: Compiled, site: Site, line: str, what: str, more: dict[str, str]) -> PartSpec:
    assert made.exec_user is not None
    return NOTHING._replace(
        uid=uid,
        key=order.key,
        attempt=order.attempt,
        title=f"{show(order.key)} {what}",
        user=made.exec_user.account,
        env=_environment(order, made, site, made.exec_user) | more,
        cwd=FOLDER,
        tasks=(TaskSpec(NO_RANK, {}),),
        argv=("/bin/sh", "-c", line),
        stdin="/dev/null",
        stdout=DISCARDED,
        notes=True,
    )


def _environment(order: pb.Order, made: Compiled, site: Site, user: User) -> dict[str, str]:
    env = environ.of_host(made.text, made.user, site) | environ.own(made.text, order.key, order.start, ("", ""))
    env |= {"PATH": PATH, "HOME": user.home, "SHELL": "/bin/sh", "USER": user.name, "LOGNAME": user.name, "PWD": FOLDER}
    return {name: value for name, value in env.items() if value and name != _SECRET}

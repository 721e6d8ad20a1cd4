"""A site's method: ``echkpnt.NAME`` writes a generation, run beside the job by a part of the agent's own.

Rule: the program that runs it commits the generation and says its number and size, or in one line why there is none.
"""

from __future__ import annotations

import os

from agent.launch import checkpoints, environ, report
from agent.launch.build import Compiled
from agent.launch.checkpointing.program import HOLDER_FAILED
from agent.launch.site import Site
from agent.starter.protocol.part import PartSpec
from agent.starter.protocol.reports import End
from proto import agent_pb2 as pb
from proto.daemon.cpu_precedence import LEAST


def part(
    uid: str, order: pb.Order, made: Compiled, site: Site, folder: str, pids: list[int], kill: bool, deadline: float | None
) -> PartSpec:
    """The part that makes a checkpoint of the tasks ``pids``. ``folder``: where the job runs; ``deadline``: of its lease."""
    env = environ.own(made.text, order.key, order.start, ("", ""))
    running = " ".join(map(str, pids))
    env |= {"LSB_JOBPIDS": running, "LSB_JOBPGIDS": running}
    env = {name: value for name, value in env.items() if value}
    found = report.command_part(uid, order, made, "checkpoint", folder, "", env)
    argv = checkpoints.making(made.text, site, order.key, pids[0] if pids else 0, kill)
    return found._replace(argv=argv, notes=True, stderr=None, deadline=deadline)


def copier(
    uid: str,
    order: pb.Order,
    made: Compiled,
    site: Site,
    generation: int,
    holder: pb.Holder | None,
    deadline: float | None,
    waited_for: bool,
) -> PartSpec:
    """The part that copies a generation to the shared folder or ``holder``.

    With the least claim to processors and disks, unless the end of the job waits for it (``waited_for``): on a host that others
    keep busy it would come too late.
    """
    env = {"LAVA_HOST": site.host} | checkpoints.holders([holder] if holder is not None else [])
    found = report.command_part(uid, order, made, "checkpoint copy", "/", "", env)
    argv = checkpoints.staging(made.text, site, made.user.name, order, generation)
    # the kernel gives a process of this niceness the lowest priority on disks, too
    return found._replace(argv=argv, notes=True, stderr=None, nice=found.nice if waited_for else LEAST, deadline=deadline)


def is_holders_fault(end: End | None) -> bool:
    """Whether a copy has failed for the host that it went to."""
    return end is not None and os.waitstatus_to_exitcode(end.status) == HOLDER_FAILED


def outcome(end: End | None, reason: str, what: str = "checkpoint") -> tuple[int, int, str]:
    """(generation, bytes, "") of a part that has ended, or (-1, 0, why there is none). ``reason``: why it has no end."""
    if end is None:
        return -1, 0, reason or f"it is not known how the {what} ended"
    lines = end.note.splitlines()
    said = lines[-1] if lines else ""
    words = said.split()
    if not end.status and len(words) == 2 and all(word.isdecimal() for word in words):
        return int(words[0]), int(words[1]), ""
    code = os.waitstatus_to_exitcode(end.status)
    how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return -1, 0, said if code > 0 and said else f"the {what} was ended: {how}"

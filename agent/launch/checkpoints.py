"""By which method a job is checkpointed on this host, and what is run there for one that lava carries out: ``criu``, a site's.

Rule: pure. All of it is run by ``agent.launch.checkpointing.program``, as the job's user.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence

from agent.launch import environ
from agent.launch.checkpointing import parts, program
from agent.launch.command import quote
from agent.launch.outputs import checkpoint_folder, job_stem
from agent.launch.site import Site
from agent.starter.part.generations import HOLDERS
from config.lsfconf import is_yes
from config.model.values import CHKPNT_DEFAULTS, why_not_method
from proto import agent_pb2 as pb

APP = "app"
"""The job's program writes its checkpoints itself."""
MPI = "mpi"
"""The launch of a job whose ranks lava starts."""
_ROOT = os.path.abspath(os.path.join(os.path.dirname(program.__file__), *[os.pardir] * 3))
_BEGIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from agent.launch.checkpointing.program import main;"
    " sys.exit(main(sys.argv[1:]))"
)


def method(text: pb.JobText, site: Site) -> str:
    """The job's method; where it leaves it open that of LSB_ECHKPNT_METHOD, in its environment or in lsf.conf, else ``app``.

    ValueError for a name that is none.
    """
    if text.checkpoint_method not in CHKPNT_DEFAULTS:
        return text.checkpoint_method
    if text.checkpoint_method == "default" or text.roles:
        return APP
    words = _setting(text, site, "LSB_ECHKPNT_METHOD").split()
    found = words[0] if words else APP
    if why := why_not_method(found):
        raise ValueError(f"LSB_ECHKPNT_METHOD: {why}")
    return APP if found == "default" else found


def is_criu(text: pb.JobText, site: Site) -> bool:
    """Whether the job is checkpointed by ``criu``."""
    return bool(text.checkpoint_folder) and method(text, site) == program.CRIU


def timeout(site: Site) -> int:
    """Seconds that a checkpoint may take."""
    return site.settings.lava_chkpnt_timeout


def before(text: pb.JobText, site: Site, key: int, again: bool) -> str:
    """The shell command before a job starts, "" for ``app``; ``again``: it goes on from a generation."""
    if method(text, site) == APP:
        return ""
    return " ".join(map(quote, words("restart", json.dumps(_asked(text, site, key) | {"again": again}))))


def wrapped(argv: Sequence[str], text: pb.JobText, site: Site, key: int, again: bool, slots: int = 1) -> tuple[str, ...]:
    """What a job executes: with ``criu`` what keeps it apart and restores it; with a site's method erestart's command, if any.

    ``slots``: of an MPI job, whose ranks are then in one process tree.
    """
    found = method(text, site)
    if found == APP or not (again or found == program.CRIU):
        return tuple(argv)
    if found == program.CRIU and text.launch == MPI:
        argv = words("ranks", str(slots), *argv)
    return (*words("run", json.dumps(_asked(text, site, key) | {"again": again})), *argv)


def making(text: pb.JobText, site: Site, key: int, group: int, kill: bool) -> tuple[str, ...]:
    """The command that writes one generation. ``group``: the process group of the job; ``kill``: the job ends with it."""
    return words("make", json.dumps(_asked(text, site, key) | {"group": group, "kill": kill}))


def part_of(text: pb.JobText, start: pb.Start, site: Site | None = None) -> str:
    """The folder, in the job's own, of a host's part of each generation; "" where each generation is in one place.

    With ``site``: ValueError where no parts can be made by the job's method.
    """
    if not text.checkpoint_stage or len(start.hosts) < 2:
        return ""
    if site is not None and method(text, site) != APP:
        raise ValueError("-k: stage: a job on several hosts writes its checkpoints itself (method=app)")
    return parts.name_of(start.place)


def folder_of(text: pb.JobText, order: pb.Order) -> str:
    """Where a part of a job writes its checkpoints."""
    found = checkpoint_folder(text, order.key)
    part = part_of(text, order.start)
    return os.path.join(found, part) if part else found


def staging(text: pb.JobText, site: Site, user: str, order: pb.Order, generation: int) -> tuple[str, ...]:
    """The command that copies a generation to the shared folder, or to the host that ``holders`` names."""
    return words("stage", json.dumps(_staged(text, site, user, order) | {"generation": generation}))


def fetching(text: pb.JobText, site: Site, user: str, order: pb.Order, most: int) -> str:
    """The shell command that brings the newest generation before a job starts again, "" where none is to be copied.

    ``most``: the newest that it may go on from; -1: any.
    """
    if not text.checkpoint_stage and not text.checkpoint_to_hosts:
        return ""
    asked = _staged(text, site, user, order) | {"most": most}
    if text.checkpoint_to_hosts:
        asked["patience"] = site.settings.lava_chkpnt_copy_wait
    return " ".join(map(quote, words("fetch", json.dumps(asked))))


def holders(found: Iterable[pb.Holder]) -> dict[str, str]:
    """The variable that tells the program of hosts with copies of the job's generations; a command line would show the tokens."""
    told = [
        {
            "host": one.host,
            "address": one.address,
            "port": one.port,
            "print": one.print,
            "token": one.token,
            "generations": list(one.generations),
        }
        for one in found
    ]
    return {HOLDERS: json.dumps(told)} if told else {}


def stage_folder(text: pb.JobText, user: str, key: int) -> str:
    """Where copies of a job's generations are; "": there are none."""
    return os.path.join(text.checkpoint_stage, user, job_stem(key)) if text.checkpoint_stage else ""


def words(*arguments: str) -> tuple[str, ...]:
    """The command line of the program."""
    return (sys.executable, "-I", "-S", "-c", _BEGIN, _ROOT, *arguments)


def _staged(text: pb.JobText, site: Site, user: str, order: pb.Order) -> dict[str, object]:
    found: dict[str, object] = {
        "folder": folder_of(text, order),
        "method": "",
        "stage": stage_folder(text, user, order.key),
        "stamp": "" if text.checkpoint_of else f"{text.cluster} {text.submitted:.6f}",
        "kept": _kept(text, site),
    }
    if part_of(text, order.start):
        start = order.start
        found |= {"place": start.place, "slots": [host.slots for host in start.hosts], "attempt": order.uid}
    return found


def _kept(text: pb.JobText, site: Site) -> int:
    return text.checkpoint_keep or site.settings.lava_chkpnt_keep


def _asked(text: pb.JobText, site: Site, key: int) -> dict[str, object]:
    found = method(text, site)
    return {
        "folder": checkpoint_folder(text, key),
        "method": found,
        "where": _setting(text, site, "LSB_ECHKPNT_METHOD_DIR") or site.conf.get("LSF_SERVERDIR", ""),
        "network": found == program.CRIU and text.launch == MPI,
        "criu": site.conf.get("LAVA_CRIU") or program.CRIU,
        "timeout": timeout(site),
        "keep_output": is_yes(environ.given(text).get("LSB_ECHKPNT_KEEP_OUTPUT", "")) or site.settings.lsb_echkpnt_keep_output,
        "kept": _kept(text, site),
    }


def _setting(text: pb.JobText, site: Site, name: str) -> str:
    """Of the job's environment, else of lsf.conf."""
    return environ.given(text).get(name) or site.conf.get(name, "")

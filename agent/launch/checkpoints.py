"""By which method a job is checkpointed on this host, and what is run there for one that lava carries out: ``criu``, a site's.

Rule: pure. All of it is run by ``agent.launch.checkpointing.program``, as the job's user.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from agent.launch.checkpointing import program
from agent.launch.command import quote
from agent.launch.outputs import checkpoint_folder
from agent.launch.site import Site, is_yes
from config.model.values import CHKPNT_DEFAULTS, why_not_method
from proto import agent_pb2 as pb

APP = "app"
"""The job's program writes its checkpoints itself."""
MPI = "mpi"
"""The launch of a job whose ranks lava starts."""
CRIU = "criu"
"""Its processes are dumped and restored."""
KEPT = 2
"""LAVA_CHKPNT_KEEP where it is not set."""
TIMEOUT = 600
"""LAVA_CHKPNT_TIMEOUT where it is not set, in seconds."""
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
    return bool(text.checkpoint_folder) and method(text, site) == CRIU


def timeout(site: Site) -> int:
    """Seconds that a checkpoint may take."""
    return _number(site, "LAVA_CHKPNT_TIMEOUT") or TIMEOUT


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
    if found == APP or not (again or found == CRIU):
        return tuple(argv)
    if found == CRIU and text.launch == MPI:
        argv = words("ranks", str(slots), *argv)
    return (*words("run", json.dumps(_asked(text, site, key) | {"again": again})), *argv)


def making(text: pb.JobText, site: Site, key: int, group: int, kill: bool) -> tuple[str, ...]:
    """The command that writes one generation. ``group``: the process group of the job; ``kill``: the job ends with it."""
    return words("make", json.dumps(_asked(text, site, key) | {"group": group, "kill": kill}))


def words(*arguments: str) -> tuple[str, ...]:
    """The command line of the program."""
    return (sys.executable, "-I", "-S", "-c", _BEGIN, _ROOT, *arguments)


def _asked(text: pb.JobText, site: Site, key: int) -> dict[str, object]:
    found = method(text, site)
    return {
        "folder": checkpoint_folder(text, key),
        "method": found,
        "where": _setting(text, site, "LSB_ECHKPNT_METHOD_DIR") or site.conf.get("LSF_SERVERDIR", ""),
        "network": found == CRIU and text.launch == MPI,
        "criu": site.conf.get("LAVA_CRIU") or CRIU,
        "timeout": timeout(site),
        "keep_output": is_yes(text.env, "LSB_ECHKPNT_KEEP_OUTPUT") or site.yes("LSB_ECHKPNT_KEEP_OUTPUT"),
        "kept": text.checkpoint_keep or _number(site, "LAVA_CHKPNT_KEEP") or KEPT,
    }


def _setting(text: pb.JobText, site: Site, name: str) -> str:
    """Of the job's environment, else of lsf.conf."""
    return text.env.get(name) or site.conf.get(name, "")


def _number(site: Site, name: str) -> int:
    value = site.conf.get(name, "")
    return int(value) if value.isdecimal() else 0

"""By which method a job is checkpointed on this host, and the programs of a site's method: ``echkpnt.NAME``, ``erestart.NAME``.

Rule: pure. The programs are run by ``agent.launch.checkpoint_program``, as the job's user.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from agent.launch import checkpoint_program
from agent.launch.command import quote
from agent.launch.outputs import checkpoint_folder
from agent.launch.site import Site, is_yes
from config.model.values import CHKPNT_DEFAULTS, why_not_method
from proto import agent_pb2 as pb

APP = "app"
"""The job's program writes its checkpoints itself."""
KEPT = 2
"""LAVA_CHKPNT_KEEP where it is not set."""
TIMEOUT = 600
"""LAVA_CHKPNT_TIMEOUT where it is not set, in seconds."""
_ROOT = os.path.abspath(os.path.join(os.path.dirname(checkpoint_program.__file__), *[os.pardir] * 2))
_BEGIN = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from agent.launch.checkpoint_program import main;"
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


def timeout(site: Site) -> int:
    """Seconds that a checkpoint may take."""
    return _number(site, "LAVA_CHKPNT_TIMEOUT") or TIMEOUT


def before(text: pb.JobText, site: Site, key: int, again: bool) -> str:
    """The shell command before a job of a site's method starts, "" for ``app``; ``again``: it goes on from a generation."""
    if method(text, site) == APP:
        return ""
    return " ".join(map(quote, words("restart", json.dumps(_asked(text, site, key) | {"again": again}))))


def wrapped(argv: Sequence[str], text: pb.JobText, site: Site, key: int) -> tuple[str, ...]:
    """What a job of a site's method executes when it goes on from a generation: erestart's command, if it left one."""
    return tuple(argv) if method(text, site) == APP else (*words("run", checkpoint_folder(text, key)), *argv)


def making(text: pb.JobText, site: Site, key: int, group: int, kill: bool) -> tuple[str, ...]:
    """The command that writes one generation. ``group``: the process group of the job; ``kill``: the job ends with it."""
    return words("make", json.dumps(_asked(text, site, key) | {"group": group, "kill": kill}))


def words(*arguments: str) -> tuple[str, ...]:
    """The command line of ``checkpoint_program``."""
    return (sys.executable, "-I", "-S", "-c", _BEGIN, _ROOT, *arguments)


def _asked(text: pb.JobText, site: Site, key: int) -> dict[str, object]:
    return {
        "folder": checkpoint_folder(text, key),
        "method": method(text, site),
        "where": _setting(text, site, "LSB_ECHKPNT_METHOD_DIR") or site.conf.get("LSF_SERVERDIR", ""),
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

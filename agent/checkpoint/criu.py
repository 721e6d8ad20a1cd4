"""Whether CRIU works on this host: tried once, by a user without privileges, before the master hears of the host."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess

from agent.launch import checkpoints
from agent.launch.checkpointing.criu.command import FOLDERS
from agent.launch.checkpointing.program import CRIU
from agent.launch.site import Site

NAME = CRIU
WITHIN = 60.0
"""Seconds; more than the trial takes until it gives up by itself, as nothing of it is left then."""
_FOR_PYTHON = ("LD_LIBRARY_PATH",)
log = logging.getLogger("lava-agent")


def found(site: Site) -> tuple[str, ...]:
    """``criu``, or nothing."""
    program = shutil.which(site.conf.get("LAVA_CRIU") or NAME, path=FOLDERS)
    if program is None:
        return ()
    why = _try(program)
    if why:
        log.warning("CRIU is not offered to jobs here: %s", why)
    return () if why else (NAME,)


def _try(program: str) -> str:
    """Why it does not work, "" where it does."""
    words = checkpoints.words("trial", program)
    # what becomes nobody can be read by whoever else is nobody: nothing of the agent's environment is for them
    env = {"PATH": FOLDERS} | {name: os.environ[name] for name in _FOR_PYTHON if name in os.environ}
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=WITHIN, cwd="/", env=env, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1] if done.returncode else ""

"""Writes a checkpoint of a job, makes a restart ready, or becomes what the job runs. Each takes one JSON object.

``make`` writes ``gen-N.tmp``, adds the manifest, syncs and renames it, and removes older generations; ``restart`` runs before the
job does; ``run`` becomes its process. ``stage`` copies a generation to a shared folder, ``fetch`` brings the newest copy back.
``trial PROGRAM`` tells whether CRIU works on this host, ``ranks NUMBER WORD …`` becomes a small launcher of MPI ranks, and
``hold`` holds copies for other hosts. Hosts that hold those of the job are in LAVA_COPIES: their tokens are nobody else's to see.

Rule: a generation that is there is whole; whatever goes wrong is one line on standard error and leaves older generations alone.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from agent.launch.checkpointing import site_programs
from agent.launch.checkpointing.asked import Asked, CheckpointError, WrongHosts
from agent.launch.checkpointing.criu import method as criu
from agent.launch.checkpointing.criu import ranks, trial
from agent.starter.part.generations import HOLDERS
from proto.daemon.cpu_precedence import give_way

CRIU = "criu"
HOLDER_FAILED = 3
"""The exit status where it is such a host that failed."""


def main(words: list[str]) -> int:
    """``make``, ``restart``, ``stage`` or ``fetch`` JSON, or one of the others with their words; the exit status."""
    what, text, *rest = words
    folder = ""
    try:
        if what == "trial":
            trial.run(text)
            return 0
        if what == "ranks":
            ranks.run(int(text), rest)
        if what == "hold":
            from agent.launch.checkpointing import holding

            holding.run(int(text))
        asked = Asked(json.loads(text) | {"holders": json.loads(os.environ.get(HOLDERS) or "[]")})
        folder = asked.stage if what == "stage" and asked.stage else asked.folder
        method = criu if asked.method == CRIU else site_programs
        if what == "run":
            method.run(asked, rest)
        elif what == "make":
            say("{} {}".format(*method.write(asked)))
        elif what in ("stage", "fetch"):
            return _copy(asked, what)
        else:
            method.restart(asked)
    except (CheckpointError, ValueError) as e:
        say(str(e))
        if isinstance(e, WrongHosts):
            from agent.starter.part.task_start import ABORT

            return ABORT
        return 1
    except OSError as e:
        say(f"{e.filename or folder}: {e.strerror or e}")
        return 1
    return 0


def _copy(asked: Asked, what: str) -> int:
    """Copy a generation, or bring one back; ``ssl`` is loaded only here."""
    from agent.launch.checkpointing import parts, staging
    from agent.launch.checkpointing.holder import HolderError

    copied = parts if asked.slots else staging
    if what == "fetch":
        copied.fetch(asked)
        return 0
    give_way()
    # what it has written goes away with it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        say("{} {}".format(*copied.stage(asked)))
    except HolderError as e:
        say(str(e))
        return HOLDER_FAILED
    return 0


def say(line: str) -> None:
    """One line to whoever waits: the shepherd, by the file that LAVA_SAY numbers, else standard error."""
    fd = os.environ.get("LAVA_SAY", "2")
    os.write(int(fd) if fd.isdecimal() else 2, " ".join(line.split()).encode("utf-8", "surrogateescape") + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Writes a checkpoint of a job, makes a restart ready, or becomes what the job runs. Each takes one JSON object.

``make`` writes ``gen-N.tmp``, adds the manifest, syncs and renames it, and removes older generations; ``restart`` runs before the
job does; ``run`` becomes its process. ``stage`` copies a generation to a shared folder, ``fetch`` brings the newest copy back.
``trial PROGRAM`` tells whether CRIU works on this host, and ``ranks NUMBER WORD …`` becomes a small launcher of MPI ranks.

Rule: a generation that is there is whole; whatever goes wrong is one line on standard error and leaves older generations alone.
"""

from __future__ import annotations

import json
import os
import signal
import sys

from agent.launch.checkpointing import site_programs, staging
from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.criu import method as criu
from agent.launch.checkpointing.criu import ranks, trial

CRIU = "criu"


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
        asked = Asked(json.loads(text))
        folder = asked.folder
        method = criu if asked.method == CRIU else site_programs
        if what == "run":
            method.run(asked, rest)
        elif what in ("make", "stage"):
            if what == "stage":
                folder = asked.stage
                # what it has written goes away with it
                signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
            number, size = method.write(asked) if what == "make" else staging.stage(asked)
            say(f"{number} {size}")
        elif what == "fetch":
            staging.fetch(asked)
        else:
            method.restart(asked)
    except (CheckpointError, ValueError) as e:
        say(str(e))
        return 1
    except OSError as e:
        say(f"{e.filename or folder}: {e.strerror or e}")
        return 1
    return 0


def say(line: str) -> None:
    """One line to whoever waits: the shepherd, by the file that LAVA_SAY numbers, else standard error."""
    fd = os.environ.get("LAVA_SAY", "2")
    os.write(int(fd) if fd.isdecimal() else 2, " ".join(line.split()).encode("utf-8", "surrogateescape") + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

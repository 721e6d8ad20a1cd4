"""An elastic program in a few lines: it counts steps, with one worker for each slot that its job has right now.

Run it as ``bsub -ar -n 2,4 python3 count.py FILE``. It asks the discovery program of its job which hosts there are, starts
a worker on each by blaunch, and when the hosts change it begins a new round from the last checkpoint. A line a step goes to
FILE; FILE.stop ends it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

SAVE_EVERY = 3
WORK = "while :; do sleep 0.05; done"


def discovered() -> list[str]:
    """The hosts of the job, one name a slot."""
    said = subprocess.run([os.environ["LAVA_DISCOVER_HOSTS"]], capture_output=True, text=True, check=True).stdout
    rows = [line.partition(":") for line in said.split()]
    return [host for host, _, slots in rows for _ in range(int(slots))]


def workers(hosts: list[str]) -> list[subprocess.Popen[bytes]]:
    """One on each."""
    return [subprocess.Popen(["blaunch", host, "/bin/sh", "-c", f"'{WORK}'"]) for host in hosts]


def saved_step(path: Path) -> int:
    """The step of the last checkpoint."""
    return int(path.read_text()) if path.exists() else 0


def main() -> int:
    """Rounds until told to stop."""
    if len(sys.argv) != 2 or "LAVA_DISCOVER_HOSTS" not in os.environ:
        sys.exit("usage, as a job that may grow: bsub -ar -n 2,4 python3 count.py FILE")
    log = Path(sys.argv[1])
    checkpoint, stop = log.with_suffix(".checkpoint"), log.with_suffix(".stop")
    while not stop.exists():
        hosts = discovered()
        running = workers(hosts)
        saved = step = saved_step(checkpoint)
        while not stop.exists() and discovered() == hosts and all(one.poll() is None for one in running):
            step += 1
            time.sleep(0.05)
            with log.open("a") as file:
                file.write(json.dumps({"step": step, "workers": len(hosts), "saved": saved}) + "\n")
            if step % SAVE_EVERY == 0:
                temporary = checkpoint.with_suffix(".new")
                temporary.write_text(str(step))
                temporary.replace(checkpoint)
                saved = step
        for one in running:
            one.kill()
            one.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())

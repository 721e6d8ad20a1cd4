"""`make run`: a cluster of two hosts on this machine, one real MPI job over both, and its result checked with NumPy.

It types what a user would type (lava up, bhosts, bsub, bjobs) and shows what a user would see, in at most 40 lines.
Exit status 0 only when the product is right; the cluster is stopped whatever happens.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.prefix) / "bin"
SIZE = 768
SECONDS = 6.0
"""So long the ranks multiply, again and again: there should be something to watch."""
PATIENCE = 180.0
PYTHON = str(BIN / "python")
"""Has mpi4py and NumPy, as the user's own need not."""
JOB = ["-a", "mpi", "-n", "4", "-R", "span[ptile=2]", "-o", "out.%J", shlex.quote(PYTHON), "matmul.py", "A.bin", "B.bin", "C.bin"]
"""A shell reads the command again on the host, as with any bsub."""
TERMINAL = sys.stdout.isatty()
ENDED = ("DONE", "EXIT")


class Failed(Exception):
    """Something did not go as it should; the message says what."""


def say(text: str = "") -> None:
    print(text, flush=True)


def title(text: str) -> None:
    say(f"\n\033[1m{text}\033[0m" if TERMINAL else f"\n{text}")


def output_of(argv: list[str], env: dict[str, str], folder: Path) -> str:
    """What a command prints; Failed with its own words when it fails."""
    done = subprocess.run(argv, env=env, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()
        raise Failed(f"{Path(argv[0]).name} ended with {done.returncode}: {words[-1]}")
    return done.stdout


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """The environment that `eval "$(lava up ...)"` makes; the cluster ends with the block."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LSF_", "LSB_", "LAVA_"))}
    lava = str(BIN / "lava")
    try:
        exports = output_of([lava, "up", "--dir", str(folder), "--hosts", "2", "--slots", "4"], env, ROOT)
        made = subprocess.run(["/bin/sh", "-c", exports + "\nenv -0"], env=env, capture_output=True, check=True)
        yield dict(line.split("=", 1) for line in made.stdout.decode().split("\0") if "=" in line)
    finally:
        subprocess.run([lava, "down", "--dir", str(folder)], env=env, cwd=ROOT, capture_output=True, timeout=PATIENCE)


class Table:
    """The ranks of the running job; on a terminal drawn again in its place, else shown once."""

    def __init__(self) -> None:
        self.drawn = 0
        self.text: list[str] = []

    def take(self, listing: str) -> None:
        """The task table of `bjobs -l`, without the columns that have nothing to say."""
        _, _, below = listing.partition(" TASK USAGE:\n")
        lines = [line for line in below.splitlines() if re.match(r" +(RANK|SUM|\d+) ", line)]
        if len(lines) < 3:
            return
        if all(line.split()[-2:] == ["-", "-"] for line in lines[1:]):
            lines = [re.sub(r" +(GPU_MEM|-) +(GPU_UTIL|-)$", "", line) for line in lines]
        self.text = lines
        if TERMINAL:
            self.draw()

    def draw(self) -> None:
        if self.drawn:
            sys.stdout.write(f"\033[{self.drawn}F\033[J")
        say("\n".join(self.text))
        self.drawn = len(self.text)


def state_of(job: str, env: dict[str, str], folder: Path) -> str:
    return output_of(["bjobs", "-a", "-noheader", "-o", "stat", job], env, folder).strip()


def watch(job: str, env: dict[str, str], folder: Path) -> str:
    """Show the ranks until the job ends; its last state."""
    table, deadline = Table(), time.monotonic() + PATIENCE
    while (state := state_of(job, env, folder)) not in ENDED:
        if time.monotonic() > deadline:
            why = output_of(["bjobs", "-p" if state == "PEND" else "-l", job], env, folder)
            raise Failed(f"job {job} is {state} after {PATIENCE:.0f} s:\n{why}")
        if state == "RUN":
            table.take(output_of(["bjobs", "-l", job], env, folder))
        time.sleep(0.5)
    if not TERMINAL and table.text:
        table.draw()
    return state


def report_of(path: Path) -> list[str]:
    """The end of LSF's report: how the job ended and what it used."""
    lines = path.read_text().splitlines()
    ends = [number for number, line in enumerate(lines) if re.match(r"(Successfully completed|Exited|TERM_)", line)]
    if not ends:
        raise Failed(f"no report in {path}")
    used = [line for line in lines[ends[-1] + 1 :] if re.match(r"\s*(CPU time|Max Memory|Max Threads|Run time) :", line)]
    return [f"    {lines[ends[-1]]}", *used]


def run(folder: Path, env: dict[str, str]) -> None:
    """One job, from its input to its checked result."""
    work = folder / "matmul"
    shutil.copytree(ROOT / "examples" / "matmul", work, ignore=shutil.ignore_patterns("__pycache__"))
    title("Two hosts on this machine:")
    say(output_of(["bhosts"], env, work).rstrip())

    output_of([PYTHON, "generate.py", "A.bin", "B.bin", "--size", str(SIZE)], env, work)
    command = [*JOB, "--at-least", f"{SECONDS:g}"]
    title(f"A product of two {SIZE} x {SIZE} matrices, read and written with MPI-IO, by 4 ranks on both:")
    say("$ bsub " + " ".join(f'"{word}"' if set("['") & set(word) else shlex.quote(word) for word in command))
    began = time.monotonic()
    answer = output_of(["bsub", *command], env, work).strip()
    say(answer)
    submitted = re.match(r"Job <(\d+)>", answer)
    if submitted is None:
        raise Failed("bsub printed no job id")
    job = submitted[1]

    title(f"What each rank uses (bjobs -l {job}):")
    state = watch(job, env, work)
    elapsed = time.monotonic() - began

    out = work / f"out.{job}"
    title(f"What the job printed, and the report ({out.name}):")
    ranks = re.findall(r"^(?:rank \d|\d+ x \d+,).*", out.read_text(), re.M)
    say("\n".join(f"    {line}" for line in sorted(ranks, key=lambda line: (line[:4] != "rank", line))))
    say("\n".join(report_of(out)))
    if state != "DONE":
        raise Failed(f"job {job} ended as {state}")
    checked = output_of([PYTHON, "check.py", "A.bin", "B.bin", "C.bin"], env, work).strip()
    title(f"Compared with NumPy: {checked}; {elapsed:.1f} s from bsub to the end.")


def next_steps() -> None:
    lava = os.path.relpath(BIN / "lava")
    say("\nNow yours:")
    say(f'    eval "$({lava} up --hosts 2 --slots 4)"')
    say('    bsub -n 4 hostname; bjobs -a; bpeek 1; bsub -J "many[1-1000]%4" sleep 1; bjobs -A; bkill 0')
    say(f"    {lava} down")


def main() -> int:
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="lava-run-"))
    say("lava: starting a cluster ...")
    try:
        with cluster(folder) as env:
            run(folder, env)
    except (Failed, subprocess.SubprocessError, OSError) as error:
        print(f"\nmake run failed: {error}\nIts files are in {folder} (log/, matmul/).", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        return 130
    shutil.rmtree(folder, ignore_errors=True)
    next_steps()
    return 0


if __name__ == "__main__":
    sys.exit(main())

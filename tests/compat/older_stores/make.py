"""Makes the store of an older lava: a cluster of its tree, jobs of every kind, what its commands show, and the store as SQL.

    git archive COMMIT | tar -x -C /tmp/tree
    .venv/bin/python tests/compat/older_stores/make.py /tmp/tree

As root. What a tree does not have yet (a command, an option) is left out. Writes VERSION.sql.gz and VERSION.txt beside this file.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

TREE = Path(sys.argv[1]).resolve()
HERE = Path(__file__).parent
SITE = Path("/tmp/lava-older-store")
"""The store names it."""
ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/root", "TZ": "UTC", "LANG": "C.UTF-8"}
LISTINGS = (
    ("bjobs", "-a", "-w"),
    ("bjobs", "-a", "-o", "jobid stat user queue job_name slots exit_code nexec_host delimiter='|'"),
    ("bhist", "-a", "-w"),
    ("bhist", "-a", "-l"),
    ("bacct", "-w"),
)
SHARES = "PRIORITY     = 30\nFAIRSHARE    = USER_SHARES[[default, 1]]\n"


def run(command: str, *words: str) -> str:
    """A command of the tree; its output, "" where it is refused."""
    module = f"cli.{command}" if (TREE / "cli" / f"{command}.py").exists() else "cli.listing"
    name = f", {command!r}" if module == "cli.listing" else ""
    code = f"import sys; sys.path.insert(0, {str(TREE)!r}); sys.argv[0] = {command!r}\n"
    code += f"from {module} import main; sys.exit(main(sys.argv[1:]{name}))"
    given = ENVIRON | {"LSF_ENVDIR": f"{SITE}/conf"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, *words], capture_output=True, text=True, env=given, cwd="/tmp", check=False
    )
    if done.returncode:
        sys.stderr.write(f"{command} {' '.join(words)}: {done.stderr.strip()}\n")
        return ""
    return done.stdout


def lava(*words: str) -> None:
    """``lava`` of the tree."""
    code = f"import sys; sys.path.insert(0, {str(TREE)!r}); from cli.lava import main; sys.exit(main(sys.argv[1:]))"
    environ = ENVIRON | {"PYTHONPATH": str(TREE)}
    subprocess.run([sys.executable, "-c", code, *words, "--dir", str(SITE)], check=True, env=environ, cwd=TREE)


def submit(*words: str) -> str:
    """bsub; the job's id."""
    shown = run("bsub", "-o", "/dev/null", *words)
    return shown.partition("<")[2].partition(">")[0]


def wait(job: str, state: str) -> None:
    """Wait until all of a job is in a state, 8 seconds at most: the tree of 0002 starts nothing."""
    end = time.monotonic() + 8
    while job and set(run("bjobs", "-a", "-noheader", "-o", "stat", job).split()) != {state}:
        if time.monotonic() > end:
            sys.stderr.write(f"{job} does not become {state}\n")
            return
        time.sleep(0.2)


def finished() -> None:
    """Jobs that are over, each in a way of its own."""
    done = [submit("-J", "quick", "-P", "risk", "true"), submit("-J", "part[1-4]%2", "true")]
    failed = [submit("-J", "fails", "exit 3"), submit("-J", "too_long", "-W", "5", "-g", "/risk/a", "kill -9 $$")]
    killed = submit("-J", "killed", "sleep 1000")
    mixed = submit("-J", "mixed[1-3]", "test $LSB_JOBINDEX -ne 2")
    for job in done:
        wait(job, "DONE")
    for job in failed:
        wait(job, "EXIT")
    wait(f"{mixed}[2]", "EXIT")
    wait(killed, "RUN")
    run("bkill", killed)
    wait(killed, "EXIT")
    run("bsub", "-o", "/dev/null", "-H", "-J", "gone[1-2]", "true")
    run("bkill", "-J", "gone")


def living() -> None:
    """Jobs that run, that are suspended, and that wait."""
    runs = submit("-J", "runs", "-r", "-R", "rusage[mem=10]", "-M", "500", "sleep 100000")
    gang = submit("-J", "gang", "-n", "2", "-R", "span[ptile=1]", "sleep 100000")
    stopped = submit("-J", "stopped", "sleep 100000")
    submit("-J", "again", "-q", "idle", "sleep 100000")
    for job in (runs, gang, stopped):
        wait(job, "RUN")
    run("bstop", stopped)
    wait(stopped, "USUSP")
    held = submit("-H", "-J", "held", "true")
    submit("-w", f"done({runs})", "-J", "after", "true")
    wide = submit("-n", "100", "-J", "wide", "true")
    submit("-n", "100", "-J", "wide2", "true")
    moved = submit("-H", "-J", "moved", "true")
    array = submit("-H", "-J", "later[1-6]", "sleep 100000")
    run("bkill", f"{array}[2]")
    run("bresume", f"{array}[1]")
    wait(f"{array}[1]", "RUN")
    run("bmod", "-J", "renamed", held)
    run("bmod", "-W", "30", wide)
    run("bswitch", "priority", moved)
    run("btop", wide)
    run("brequeue", gang)
    wait(gang, "RUN")
    run("bgadd", "-L", "3", "/batch/night")
    run("bpost", "-d", "half way", runs)
    data = SITE / "data"
    data.write_text("step 7 of 9\n")
    run("bpost", "-i", "1", "-d", "more", "-a", str(data), runs)
    run("bpost", "-d", "to come", held)
    hour = time.localtime(time.time() + 7200).tm_hour
    run("brsvadd", "-n", "2", "-m", "host1", "-u", "root", "-b", f"{hour}:00", "-e", f"{(hour + 1) % 24}:30")
    run("bsub", "-H", "-J", "reserved", "-U", "root#0", "-o", "/dev/null", "true")
    run("badmin", "qinact", "night")
    run("badmin", "hclose", "-C", "disk", "host2")


def main() -> None:
    """The whole."""
    shutil.rmtree(SITE, ignore_errors=True)
    os.environ["TZ"] = "UTC"
    time.tzset()
    lava("up", "--hosts", "2", "--slots", "6")
    try:
        queues = SITE / "conf" / "lsb.queues"
        queues.write_text(queues.read_text().replace("PRIORITY     = 30\n", SHARES, 1))
        run("badmin", "reconfig", "-f") or run("badmin", "reconfig")
        finished()
        living()
        texts = []
        for listing in LISTINGS:
            before = time.time()
            if shown := run(*listing):
                texts.append(f"## {(before + time.time()) / 2:.2f} {' '.join(listing)}\n{shown}")
    finally:
        lava("down")
    with contextlib.closing(sqlite3.connect(SITE / "lavad.sqlite")) as database:
        (version,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
        sql = "\n".join(database.iterdump())
    with open(HERE / f"{version}.sql.gz", "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed:
        packed.write(f"{sql}\n".encode())
    (HERE / f"{version}.txt").write_text("\n".join(texts))
    shutil.rmtree(SITE)


if __name__ == "__main__":
    main()

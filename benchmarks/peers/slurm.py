"""Slurm as a contender: controller, node daemon and munge of this user's own, in a temporary folder, on free ports.

Nothing of a Slurm that the machine may run is touched, and nothing of this one is left.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from benchmarks.cluster import comm, resident
from benchmarks.line import best_of, seconds
from benchmarks.peers.rows import ARRAY, HELD, RANKS, SINGLES, SLEEPS, Measure
from benchmarks.peers.slurm_files import build_submitter, configuration, free_ports
from benchmarks.programs import LOOPS, each_ms, rate_of_loops, wait
from cli.local.daemons import begun, children, end

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "srun", "squeue", "sinfo", "scancel")
HOW = "apt-get install slurmctld slurmd slurm-client munge (and libslurm-dev gcc, for submit_bulk_10000)"
PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
NO_OPS, COMMANDS, BULK = 500, 50, 2000
POLL = 0.1
QUICK = 0.002


def missing() -> list[str]:
    """Programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


class Slurm:
    """Use it in a ``with``."""

    name = "slurm"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lava-bench-slurm-"))
        self._environ = {"PATH": PATH, "HOME": str(self._folder), "SLURM_CONF": str(self._folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def version(self) -> str:
        """As it says itself."""
        return self._run("sbatch", "--version").strip()

    def __enter__(self) -> Slurm:
        try:
            self._start()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def _start(self) -> None:
        (self._folder / "slurm.conf").write_text(configuration(self._folder, free_ports(2)))
        for name in ("state", "spool"):
            (self._folder / name).mkdir()
        script = self._folder / "true.sh"
        script.write_text("#!/bin/sh\n/bin/true\n")
        script.chmod(0o755)
        key = self._folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(1024))
        names = {"socket": "munge.socket", "key-file": key.name, "log-file": "munge.log", "pid-file": "munge.pid"}
        names |= {"seed-file": "munge.seed"}
        places = [f"--{option}={self._folder / name}" for option, name in names.items()]
        self._daemon("munged", "--foreground", "--force", "--num-threads=4", *places)
        wait((self._folder / "munge.socket").exists, "munged", QUICK)
        self._daemon("slurmctld", "-D")
        wait(self._answers, "slurmctld to answer", POLL)
        self._daemon("slurmd", "-D", "-N", "n1")
        wait(lambda: "idle" in self._run("sinfo", "-h", "-p", "run", "-o", "%t"), "Slurm's node to be idle", POLL)
        self._submitter = build_submitter(self._folder)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if "slurmctld" in self._daemons:
            self._run("scancel", "--quiet", f"--user={os.getuid()}")
        mine = begun(children(process.pid for process in self._daemons.values()) | self._of_this_folder())
        for name in ("slurmd", "slurmctld", "munged"):
            self._stop(name)
        end(mine | begun(self._of_this_folder()), 2.0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _of_this_folder(self) -> set[int]:
        """Processes that have this configuration in their environment: those of jobs have."""
        marker, found = f"SLURM_CONF={self._folder}/".encode(), set()
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    environ = Path(f"/proc/{entry}/environ").read_bytes()
                except OSError:
                    continue
                if marker in environ:
                    found.add(int(entry))
        return found

    def _daemon(self, name: str, *words: str) -> None:
        path = shutil.which(name, path=PATH)
        assert path is not None
        with (self._folder / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [path, *words], env=self._environ, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _stop(self, name: str) -> None:
        process = self._daemons.pop(name, None)
        if process is not None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def measures(self) -> dict[str, Measure]:
        """All rows; the bulk one where a compiler and Slurm's library are."""
        held = self._sbatch("held")
        found = {
            "submit_command": Measure(lambda: each_ms(held, self._environ), "sbatch; on disk seconds later"),
            "submit_rate_4": Measure(lambda: rate_of_loops(held, self._environ, COMMANDS), "sbatch", self._clear),
            "array_submit_10000": Measure(lambda: each_ms(self._many("held", ARRAY), self._environ, 5), "sbatch", self._clear),
            "throughput_array": Measure(lambda: NO_OPS / seconds(self._array), f"{NO_OPS} elements"),
            "throughput_single": Measure(lambda: SINGLES / seconds(self._singles), f"{LOOPS} loops of sbatch"),
            "turnaround": Measure(self._turnaround, "sbatch, then squeue until it is completing"),
            "turnaround_command": Measure(lambda: each_ms(self._srun(), self._environ, 7), "srun"),
            "ranks_64": Measure(lambda: each_ms(self._srun("-n", str(RANKS), "-N", "1", "-O"), self._environ, 5), "srun -n 64"),
            "start_1000": Measure(lambda: seconds(self._start_sleeps), "an array"),
            "kill_1000": Measure(lambda: seconds(self._kill_sleeps), "scancel"),
            "memory_pending": Measure(self._fill, "slurmctld"),
            "query_all_10000": Measure(lambda: each_ms(self._path("squeue"), self._environ, 5), "squeue"),
            "query_one_10000": Measure(lambda: each_ms(self._look(), self._environ), "squeue -j JOB"),
            "restart_10000": Measure(self._restarted, "stopped in order: a killed one forgets jobs", self._clear),
        }
        if self._submitter is not None:
            found["submit_bulk_10000"] = Measure(lambda: BULK / seconds(lambda: self._submit(BULK)), "C library", self._clear)
        return found

    @staticmethod
    def _path(name: str) -> tuple[str, ...]:
        path = shutil.which(name, path=PATH)
        assert path is not None
        return (path,)

    def _sbatch(self, queue: str, *words: str) -> tuple[str, ...]:
        return (*self._path("sbatch"), "-p", queue, "-o", "/dev/null", *words, str(self._folder / "true.sh"))

    def _many(self, queue: str, count: int) -> tuple[str, ...]:
        return self._sbatch(queue, "-a", f"1-{count}")

    def _srun(self, *words: str) -> tuple[str, ...]:
        return (*self._path("srun"), "-p", "run", *words, "/bin/true")

    def _run(self, name: str, *words: str) -> str:
        done = subprocess.run(
            [*self._path(name), *words], env=self._environ, cwd="/tmp", capture_output=True, text=True, check=False, timeout=300
        )
        return done.stdout

    def _answers(self) -> bool:
        words = [*self._path("squeue"), "-h", "-p", "run"]
        return subprocess.run(words, env=self._environ, cwd="/tmp", capture_output=True, check=False).returncode == 0

    def _left(self, queue: str) -> bool:
        return bool(self._run("squeue", "-h", "-p", queue).strip())

    def _gone(self, queue: str = "run") -> None:
        wait(lambda: not self._left(queue), f"Slurm's jobs of {queue} to end", POLL)

    def _clear(self) -> None:
        self._run("scancel", "--quiet", f"--user={os.getuid()}")
        for queue in ("held", "run", "many"):
            self._gone(queue)

    def _array(self) -> None:
        self._run("sbatch", *self._many("run", NO_OPS)[1:])
        self._gone()

    def _singles(self) -> None:
        rate_of_loops(self._sbatch("run"), self._environ, SINGLES // LOOPS)
        self._gone()

    def _turnaround(self) -> float:
        def one() -> None:
            job = self._run("sbatch", "--parsable", *self._sbatch("run")[1:]).strip()
            wait(lambda: not self._run("squeue", "-h", "-j", job, "-t", "PD,R").strip(), f"Slurm's job {job}", QUICK)

        found = 1000 * best_of(one, 5)
        self._gone()
        return found

    def _start_sleeps(self) -> None:
        self._run("sbatch", "-p", "many", "-o", "/dev/null", "-a", f"1-{SLEEPS}", "--wrap", "exec sleep 600")
        wait(lambda: self._sleeping() >= SLEEPS, "Slurm's sleeps to be there", POLL)

    def _sleeping(self) -> int:
        return sum(comm(pid) == "sleep" for pid in self._of_this_folder())

    def _kill_sleeps(self) -> None:
        self._run("scancel", "--quiet", f"--user={os.getuid()}")
        self._gone("many")

    def _fill(self) -> float:
        """Leaves them pending for the rows that follow."""
        self._clear()
        master = self._daemons["slurmctld"].pid
        before = resident(master)
        if self._submitter is not None:
            self._submit(HELD)
        else:
            rate_of_loops(self._sbatch("held"), self._environ, HELD // LOOPS)
        self._held = self._run("squeue", "-h", "-o", "%i").split()[-1]
        return (resident(master) - before) / HELD

    def _look(self) -> tuple[str, ...]:
        return (*self._path("squeue"), "-j", self._held)

    def _submit(self, count: int) -> None:
        """Pending jobs, by Slurm's C library."""
        words = (str(self._submitter), "held", str(count))
        subprocess.run(words, env=self._environ, check=True, stdout=subprocess.DEVNULL)

    def _restarted(self) -> float:
        self._stop("slurmctld")
        begin = time.perf_counter()
        self._daemon("slurmctld", "-D")
        wait(self._answers, "slurmctld to answer", QUICK)
        return time.perf_counter() - begin

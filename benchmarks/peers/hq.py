"""HyperQueue as a contender, by the Python API of its wheel (which has no command); its server keeps nothing on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from agent.starter.system.proctree import children
from benchmarks.cluster import resident
from benchmarks.line import best_of, seconds
from benchmarks.peers.rows import ARRAY, HELD, NO_OPS, SINGLES, SLEEPS, Measure
from benchmarks.programs import each_ms, wait
from cli.local.daemons import begun, end
from cli.local.folder import ROOT

HOW = "python3 -m venv build/peers && build/peers/bin/pip install hyperqueue"
PROGRAM = str(Path(__file__).with_name("hq_program.py"))
SLOTS = 64
QUIET = 0.1
"""Seconds without a child after which a worker has nothing to run: a free core gets its next task in a few milliseconds."""
LOOK = 0.005
API_WAIT = "its wait looks once a second"


def find() -> str | None:
    """A Python that has HyperQueue: LAVA_HYPERQUEUE_PYTHON, build/peers, lava's own, the one on PATH."""
    named = os.environ.get("LAVA_HYPERQUEUE_PYTHON")
    for path in (named, ROOT / "build/peers/bin/python", sys.executable, shutil.which("python3")):
        if path and Path(path).exists():
            words = [str(path), "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('hyperqueue') is None)"]
            if subprocess.run(words, check=False).returncode == 0:
                return str(path)
    return None


class Server:
    """One server with a worker of ``cores`` (0: none), and a client in a process of its own."""

    def __init__(self, python: str, cores: int) -> None:
        self.folder = tempfile.mkdtemp(prefix="lava-bench-hq-")
        self._process = self._start(python, "server", self.folder, str(cores))
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        while line and "ready" not in line:
            line = self._process.stdout.readline()
        if not line:
            self.close()
            raise SystemExit("HyperQueue's server did not start")
        self._client = self._start(python, "client", self.folder)

    @staticmethod
    def _start(python: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [python, PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    @property
    def pid(self) -> int:
        """Of the server, which has the worker in it."""
        return self._process.pid

    def submit(self, jobs: int, tasks: int, *words: str) -> float:
        """Seconds that the API took."""
        return self._ask("submit", jobs, tasks, *words)

    def run(self, jobs: int, tasks: int, *words: str) -> float:
        """Seconds until the API's wait for them has returned."""
        return self._ask("wait", jobs, tasks, *words)

    def _ask(self, what: str, jobs: int, tasks: int, *words: str) -> float:
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.write(" ".join((what, str(jobs), str(tasks), *words)) + "\n")
        self._client.stdin.flush()
        return float(self._client.stdout.readline())

    def running(self) -> list[int]:
        """Process ids of tasks."""
        return children(self.pid)

    def drained(self) -> float:
        """Wait until no task has run for a while; the time (perf_counter) when the last one was seen."""
        wait(lambda: bool(self.running()), "HyperQueue's first task", 0.0005)
        last = time.perf_counter()
        while time.perf_counter() - last < QUIET:
            if self.running():
                last = time.perf_counter()
            time.sleep(LOOK)
        return last

    def close(self) -> None:
        """End server, client and tasks."""
        tasks = begun(self.running() if self._process.poll() is None else [])
        for process in (getattr(self, "_client", None), self._process):
            if process is not None:
                process.kill()
                process.wait()
        end(tasks, 0.0)
        shutil.rmtree(self.folder, ignore_errors=True)


class HyperQueue:
    """Use it in a ``with``."""

    name = "hyperqueue"

    def __init__(self, python: str) -> None:
        self._python = python
        self._servers: dict[int, Server] = {}

    @property
    def version(self) -> str:
        """As it says itself."""
        done = subprocess.run([self._python, PROGRAM, "version"], capture_output=True, text=True, check=True)
        return f"HyperQueue {done.stdout.strip().removeprefix('v')}"

    def __enter__(self) -> HyperQueue:
        self._server(SLOTS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for server in self._servers.values():
            server.close()

    def _server(self, cores: int) -> Server:
        if cores not in self._servers:
            self._servers[cores] = Server(self._python, cores)
        return self._servers[cores]

    def _forget(self, cores: int) -> None:
        if cores in self._servers:
            self._servers.pop(cores).close()

    def measures(self) -> dict[str, Measure]:
        """What its API can do: it lists nothing, kills nothing, and remembers nothing over a restart."""
        submit, env = "a fresh Python process", dict(os.environ)
        forget = lambda: self._forget(0)  # noqa: E731
        return {
            "submit_command": Measure(lambda: each_ms(self._submit(1), env), submit),
            "array_submit_10000": Measure(lambda: each_ms(self._submit(ARRAY), env, 5), submit, forget),
            "throughput_array": Measure(lambda: self._rate(1, NO_OPS), f"{NO_OPS} tasks of a job"),
            "throughput_chunks": Measure(lambda: self._rate(1, NO_OPS), "as it always does"),
            "throughput_single": Measure(lambda: self._rate(SINGLES, 1), "API in one process"),
            "api_array": Measure(lambda: NO_OPS / self._server(SLOTS).run(1, NO_OPS, "/bin/true"), API_WAIT),
            "api_single": Measure(lambda: SINGLES / self._server(SLOTS).run(SINGLES, 1, "/bin/true"), API_WAIT),
            "turnaround": Measure(self._turnaround, "API to the task's file seen"),
            "start_1000": Measure(self._start_sleeps, "tasks of a job", lambda: self._forget(SLEEPS)),
            "memory_pending": Measure(self._fill, "server"),
            "submit_bulk_10000": Measure(self._bulk, "API in one process; not on disk", forget),
        }

    def _submit(self, tasks: int) -> tuple[str, ...]:
        return (self._python, PROGRAM, "submit", self._server(0).folder, str(tasks))

    def _rate(self, jobs: int, tasks: int) -> float:
        server = self._server(SLOTS)
        begin = time.perf_counter()
        server.submit(jobs, tasks, "/bin/true")
        return jobs * tasks / (server.drained() - begin)

    def _turnaround(self) -> float:
        server = self._server(SLOTS)
        with tempfile.TemporaryDirectory(prefix="lava-bench-") as folder:
            flags = (Path(folder, str(at)) for at in range(5))

            def one() -> None:
                flag = next(flags)
                server.submit(1, 1, "/bin/touch", str(flag))
                wait(flag.exists, "HyperQueue's task", 0.0005)

            return 1000 * best_of(one, 5)

    def _start_sleeps(self) -> float:
        server = self._server(SLEEPS)

        def started() -> None:
            server.submit(1, SLEEPS, "/bin/sleep", "600")
            wait(lambda: len(server.running()) >= SLEEPS, "HyperQueue's sleeps", 0.05)

        return seconds(started)

    def _fill(self) -> float:
        self._forget(0)
        server = self._server(0)
        before = resident(server.pid)
        server.submit(HELD, 1, "/bin/true")
        return (resident(server.pid) - before) / HELD

    def _bulk(self) -> float:
        return HELD / self._server(0).submit(HELD, 1, "/bin/true")

"""A real cluster for tests: ``lava up`` in a folder of its own, commands run as a user would, daemons killed for real."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from cli.local.daemons import begun, children, find_pid
from cli.local.folder import Folder
from tests.support.processes import is_alive
from tests.support.wait import SLOW, wait_until

ENDED = ("DONE", "EXIT")
VENV = Path(sys.executable).parent
"""Python with the packages that example programs need, MPICH and its compilers."""


class Cluster:
    """One cluster; use it in a ``with``, so that nothing is left."""

    def __init__(
        self,
        folder: Path,
        hosts: int = 1,
        slots: int = 4,
        options: tuple[str, ...] = (),
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = Folder(folder)
        self.hosts = [f"host{number}" for number in range(1, hosts + 1)]
        self._words = ["up", "--dir", str(folder), "--hosts", str(hosts), "--slots", str(slots), *options]
        ours = {name: value for name, value in os.environ.items() if name != "GRPC_ENABLE_FORK_SUPPORT"}  # tests/conftest.py
        # as of a user who has this virtual environment activated
        self._given = {**ours, "PATH": f"{VENV}:{ours.get('PATH', os.defpath)}", **(environ or {})}
        self.environ = dict(self._given)

    def __enter__(self) -> Self:
        try:
            self.up()
        except BaseException:
            self.lava("down", "--dir", str(self.folder.path))  # what has come up
            raise
        return self

    def __exit__(self, *_: object) -> None:
        before = begun(self.processes())
        self.lava("down", "--dir", str(self.folder.path))
        left = before.items() & begun(before).items()
        assert not left, f"left behind by lava down: {sorted(left)}"

    def up(self) -> None:
        """Start what is not running."""
        done = self.lava(*self._words)
        assert done.returncode == 0, done.stderr + self.logs()
        for line in done.stdout.splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            self.environ[name] = value.strip("'")

    def lava(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run ``lava``."""
        return subprocess.run(
            [sys.executable, "-m", "cli.lava", *words],
            capture_output=True,
            text=True,
            timeout=180 * SLOW,
            env=self._given,
            cwd=Path(__file__).parents[3],
            check=False,
        )

    def run(
        self,
        command: str,
        *,
        ok: bool = True,
        timeout: float = 60,
        user: int | None = None,
        cwd: Path | None = None,
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell line with the cluster's environment; ``ok`` asserts that it succeeds."""
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            capture_output=True,
            text=True,
            timeout=timeout * SLOW,
            env=self.environ,
            cwd=cwd or self.folder.path,
            user=user,
            input=stdin,
            check=False,
        )
        if ok:
            assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done

    def submit(self, words: str, **how: object) -> int:
        """bsub; the job id."""
        done = self.run(f"bsub {words}", **how)  # type: ignore[arg-type]
        found = re.match(r"Job <(\d+)> is submitted to (default )?queue <\w+>\.\n", done.stdout)
        assert found, done.stdout + done.stderr
        return int(found.group(1))

    def states(self, job: int | str) -> list[str]:
        """STAT of the job, or of all elements of the array."""
        done = self.run(f"bjobs -a -noheader -o stat '{job}'", ok=False)
        return done.stdout.split()

    def wait_for(self, job: int | str, *states: str, timeout: float = 30) -> list[str]:
        """Wait until every element of the job is in one of the states."""

        def there() -> list[str]:
            now = self.states(job)
            return now if now and all(state in states for state in now) else []

        return wait_until(there, timeout, lambda: f"job {job} to be {states}: {self.states(job)}\n{self.logs()}")

    def wait_end(self, job: int | str, timeout: float = 30) -> list[str]:
        """Wait for the end of the job or of all its elements."""
        return self.wait_for(job, *ENDED, timeout=timeout)

    def pid(self, name: str) -> int:
        """Process of ``lavad``, ``agent-HOST`` or ``starter-HOST`` (0: not running)."""
        return find_pid(self.folder, name)

    def kill(self, name: str, sign: int = signal.SIGKILL) -> None:
        """Send a signal to a daemon."""
        pid = self.pid(name)
        assert pid, f"{name} is not running"
        os.kill(pid, sign)
        if sign == signal.SIGKILL:
            wait_until(lambda: not is_alive(pid), 30, f"{name} to be gone")

    def kill_host(self, host: str) -> None:
        """The loss of a whole host: agent and starter, which could tell of it, and then everything they started."""
        daemons = [self.pid(f"agent-{host}"), self.pid(f"starter-{host}")]
        pids = children(daemons)
        for pid in [*daemons, *pids.difference(daemons)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def processes(self) -> set[int]:
        """Every process of the cluster and of its jobs."""
        names = [path.stem for path in self.folder.run.glob("*.pid")]
        return children([self.pid(name) for name in names])

    def logs(self) -> str:
        """The ends of the daemons' logs, for the text of a failure."""
        parts = []
        for path in sorted(self.folder.log.glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()[-15:]
            parts.append(f"--- {path.name}\n" + "\n".join(lines))
        return "\n".join(parts)

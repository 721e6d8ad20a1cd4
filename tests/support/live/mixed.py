"""A site whose daemons and commands are of two versions: a master and hosts over TLS, each from the tree that a test says.

The version before comes from the history of this repository (``OLDER``), and runs with the packages of this environment.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.local.certs import make
from cli.local.daemons import begun, children
from cli.local.folder import commands_folder
from tests.support.processes import is_alive
from tests.support.wait import SLOW, wait_until

OLDER = "54218a511a7c6d4e4b2aed5a95e06c351c3db4b7"
"""The last commit of the version before: what daemons and commands of this tree have to work with (proto/version.py, OLDEST)."""
HERE = Path(__file__).resolve().parents[3]
_RUN = "import sys; sys.path.insert(0, {root!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"
_CONF = """
import sys; sys.path.insert(0, {root!r})
from config.generate import write_cluster
write_cluster({conf!r}, "lava", {hosts!r}, [{user!r}], {extra!r})
"""


def older_tree(folder: Path) -> Path:
    """The files of ``OLDER`` in a folder; skips the test where its history is not here."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    done = subprocess.run(["git", "-C", str(HERE), "archive", OLDER], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"the version before ({OLDER[:7]}) is not in the history of this checkout (git fetch --unshallow)")
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=done.stdout, check=True)
    return folder


class MixedSite:
    """One master and two hosts, on loopback; use it in a ``with``, so that nothing is left."""

    def __init__(self, folder: Path, older: Path, hosts: tuple[str, ...] = ("host1", "host2"), slots: int = 64) -> None:
        self.folder = folder
        self.older = older
        self.newer = HERE
        self.hosts = hosts
        self.commands = older
        """The tree whose commands run."""
        self._pids: dict[str, int] = {}
        self._all: dict[int, int] = {}
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        for name in ("conf", "run", "log", "spool", "tls"):
            (folder / name).mkdir(parents=True)
        make(folder / "tls", "lava", ["127.0.0.1"], list(hosts))
        extra = {
            "LAVA_RUNDIR": str(folder / "run"),
            "LAVA_SPOOLDIR": str(folder / "spool"),
            "LAVA_PORT": str(self._port),
            "LAVA_TLS_DIR": str(folder / "tls"),
            "LSF_CONFDIR": str(folder / "conf"),
            "LSF_LOGDIR": str(folder / "log"),
            "LSF_SERVERDIR": str(folder / "etc"),
            "LAVA_HEARTBEAT": "1",
            "LAVA_HOST_TIMEOUT": str(int(10 * SLOW)),
            "LAVA_LEASE": "600",
            "LAVA_SAMPLE_PERIOD": "2",
            "LSF_ROOT_USER": "Y",
        }
        conf = str(folder / "conf")
        code = _CONF.format(root=str(older), conf=conf, hosts=[(h, slots) for h in hosts], user=Path.home().owner(), extra=extra)
        subprocess.run([sys.executable, "-I", "-c", code], check=True, cwd="/")

    def __enter__(self) -> MixedSite:
        return self

    def __exit__(self, *_: object) -> None:
        self._processes()  # those of jobs are found by their parents
        for sign in (signal.SIGTERM, signal.SIGKILL):
            self._end(self._daemons, sign)  # an agent whose starter ends before it does starts another
            self._end(self._alive, sign)
        assert not self._alive(), f"left behind: {self._alive()}"

    def _end(self, alive: Callable[[], set[int]], sign: int) -> None:
        for pid in alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sign)
        with contextlib.suppress(AssertionError):
            wait_until(lambda: not alive(), 30, "the site to end")

    def _daemons(self) -> set[int]:
        return {pid for pid in self._pids.values() if is_alive(pid)}

    def _alive(self) -> set[int]:
        return {pid for pid, _ in self._processes().items() & begun(self._all).items()}

    def _processes(self) -> dict[int, int]:
        """All that there have been, and when each was started."""
        starters = [self.starter(host) for host in self.hosts]
        self._all |= begun(children([*self._pids.values(), *(pid for pid in starters if pid)]))
        return self._all

    # -- daemons -----------------------------------------------------------------------------------------------------

    def master(self, tree: Path) -> None:
        """Start lavad of a tree, in place of the one that runs."""
        self.stop("lavad")
        words = ["--conf", f"{self.folder}/conf", "--run", f"{self.folder}/run", "--host", self.hosts[0]]
        self._start("lavad", tree, "lavad.main", [*words, "--listen", f"127.0.0.1:{self._port}"])

    def agent(self, host: str, tree: Path) -> None:
        """Start the agent of a tree, in place of the one that runs; it starts a starter where there is none."""
        self.stop(f"agent-{host}")
        run, name = f"{self.folder}/run", f"agent-{host}"
        words = ["--host", host, "--conf", f"{self.folder}/conf", "--run", run, "--spool", f"{self.folder}/spool/{host}"]
        words += [
            "--master",
            f"127.0.0.1:{self._port}",
            "--pidfile",
            f"{run}/{name}.pid",
            "--log",
            f"{self.folder}/log/{name}.log",
        ]
        self._start(name, tree, "agent.main", words)

    def starter(self, host: str) -> int:
        """The process of a host's starter, 0: none runs."""
        try:
            pid = int((self.folder / "run" / f"starter-{host}.pid").read_text())
        except (OSError, ValueError):
            return 0
        return pid if is_alive(pid) else 0

    def stop(self, name: str, sign: int = signal.SIGTERM) -> None:
        """End a daemon."""
        pid = self._pids.pop(name, 0)
        if pid:
            self._all |= begun([pid])
            os.kill(pid, sign)
            wait_until(lambda: _reaped(pid), 20, f"{name} to end")

    def stop_starter(self, host: str) -> None:
        """End a starter, which ends its jobs."""
        pid = self.starter(host)
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not is_alive(pid), 20, f"the starter of {host} to end")

    def _start(self, name: str, tree: Path, module: str, words: list[str]) -> None:
        code = _RUN.format(root=str(tree), module=module)
        with (self.folder / "log" / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", code, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        self._pids[name] = process.pid

    def wait_ok(self) -> None:
        """Wait until all hosts are ok."""

        def states() -> list[str]:
            return self.run("bhosts", "-noheader", "-o", "status", ok=False).stdout.split()

        wait_until(lambda: states() == ["ok"] * len(self.hosts), 60, lambda: f"all hosts to be ok\n{self.logs()}")

    def logs(self) -> str:
        """The ends of all logs."""
        texts = ((path.name, path.read_text(errors="replace")) for path in sorted((self.folder / "log").glob("*.log")))
        return "\n".join(f"--- {name}\n" + "\n".join(text.splitlines()[-15:]) for name, text in texts)

    # -- commands ----------------------------------------------------------------------------------------------------

    def run(
        self, command: str, *words: str, ok: bool = True, through: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of ``commands``, on the master's host or ``through`` the agent of another."""
        module = f"cli.{command}" if (self.commands / "cli" / f"{command}.py").exists() else "cli.listing"
        name = f", {command!r}" if module == "cli.listing" else ""
        code = f"import sys; sys.path.insert(0, {str(self.commands)!r}); sys.argv[0] = {command!r}\n"
        code += f"from {module} import main; sys.exit(main(sys.argv[1:]{name}))"
        environ = {
            "PATH": f"{commands_folder()}:{os.environ['PATH']}",
            "HOME": str(Path.home()),
            "LSF_ENVDIR": f"{self.folder}/conf",
        }
        if through:
            environ["LAVA_SOCKET"] = f"{self.folder}/run/agent-{through}.sock"
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, *words],
            capture_output=True,
            text=True,
            timeout=60 * SLOW,
            env=environ,
            cwd=cwd or self.folder,
            check=False,
        )
        assert done.returncode == 0 or not ok, f"{command} {words}: {done.stdout}{done.stderr}\n{self.logs()}"
        return done

    def submit(self, words: str, *, cwd: Path | None = None, through: str = "") -> int:
        """bsub; the job id."""
        done = self.run("bsub", *words.split(), cwd=cwd, through=through)
        found = re.match(r"Job <(\d+)> is submitted to (default )?queue <\w+>\.\n", done.stdout)
        assert found, done.stdout + done.stderr
        return int(found.group(1))

    def states(self, *jobs: int) -> list[str]:
        """STAT of each."""
        return self.run("bjobs", "-a", "-noheader", "-o", "stat", *map(str, jobs)).stdout.split()

    def wait_for(self, state: str, *jobs: int) -> None:
        """Wait until all of them are in a state."""
        wanted = [state] * len(jobs)

        def there() -> bool:
            found = self.states(*jobs)
            assert state == "EXIT" or "EXIT" not in found, f"{jobs}: {found}\n{self.run('bhist', '-l', *map(str, jobs)).stdout}"
            return found == wanted

        wait_until(there, 60, lambda: f"{jobs} to be {state}: {self.states(*jobs)}\n{self.logs()}")


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not is_alive(pid)

"""A host of a cluster whose daemons see other files than everybody else: a mount namespace of their own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


def why_not() -> str:
    """Why there can be no such host here, "" if there can."""
    if os.geteuid() != 0:
        return "only root has mount namespaces"
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


class Apart:
    """The agent of a host, and its starter where ``starter`` says so, in a namespace; in the end in the common one again."""

    def __init__(self, cluster: Cluster, host: str, starter: bool = True) -> None:
        self._cluster = cluster
        self._host = host
        self._starter = starter
        self._conf = cluster.folder.conf / "lsf.conf"
        self._own_conf = self._conf.read_text()

    def __enter__(self) -> Apart:
        self._start(["unshare", "-m", "--propagation", "private"])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._conf.write_text(self._own_conf)
        self._start([])

    def again(self, conf: Mapping[str, str]) -> None:
        """Start the daemons again with these lines in lsf.conf."""
        self._conf.write_text(self._own_conf + "".join(f"{name}={value}\n" for name, value in conf.items()))
        self._start(["unshare", "-m", "--propagation", "private"])

    def _start(self, before: list[str]) -> None:
        cluster, name = self._cluster, f"agent-{self._host}"
        pid = cluster.pid(name)
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        starter = cluster.pid(f"starter-{self._host}")
        cluster.kill(name)
        if self._starter:
            cluster.kill(f"starter-{self._host}")
        subprocess.Popen(
            [*map(str.encode, before), *words], stdin=subprocess.DEVNULL, start_new_session=True, cwd="/", env=cluster.environ
        )
        wait_until(lambda: cluster.pid(name) not in (0, pid), 30, f"{name} to be back")
        if self._starter:
            wait_until(lambda: cluster.pid(f"starter-{self._host}") not in (0, starter), 30, f"{self._host}'s starter to be back")
        wait_until(lambda: self._is_there(), 30, f"{self._host} to be ok")

    def _is_there(self) -> bool:
        status = self._cluster.run(f"bhosts -w -noheader {self._host}", ok=False).stdout.split()
        return len(status) > 1 and status[1].startswith(("ok", "closed"))

    def replace(self, path: str, by: Path) -> None:
        """In the namespace ``path`` is another file from now on."""
        self._inside("mount", "--bind", str(by), path)

    def restore(self, path: str) -> None:
        """In the namespace ``path`` is what it is outside, as a copy: a file that somebody hangs on cannot be given back."""
        copy = self._cluster.folder.path / Path(path).name
        copy.write_bytes(Path(path).read_bytes())
        self.replace(path, copy)

    def _inside(self, *words: str) -> None:
        pid = self._cluster.pid(f"agent-{self._host}")
        subprocess.run(["nsenter", "-m", "-t", str(pid), *words], check=True)

    def log(self) -> str:
        """The agent's log."""
        return (self._cluster.folder.log / f"agent-{self._host}.log").read_text(errors="replace")

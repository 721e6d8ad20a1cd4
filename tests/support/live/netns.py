"""A cluster whose hosts are network namespaces with names that nothing resolves, joined by a bridge: real TCP and TLS.

Needs root and ``ip``. The master listens on the bridge; each host's agent, starter and jobs live in its namespace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Literal

from cli.local.daemons import find_pid
from cli.local.folder import ROOT
from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

_CODE = "import sys; sys.path.insert(0, {root!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"


def why_not() -> str:
    """Why there can be none here, "" if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return "needs ip and unshare"
    probe = subprocess.run(["ip", "netns", "add", f"lavaprobe{os.getpid()}"], capture_output=True, check=False)
    if probe.returncode:
        return "ip netns add is not allowed here"
    _ip("netns", "del", f"lavaprobe{os.getpid()}")
    return ""


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class NetnsCluster(Cluster):
    """Hosts host1 … hostN at 10.A.B.1 … N, the master at 10.A.B.254."""

    def __init__(self, folder: Path, hosts: int = 2, slots: int = 4) -> None:
        super().__init__(folder, hosts, slots)
        self._tag = f"lv{os.getpid() % 100000}"
        self._net = f"10.{77 + os.getpid() // 250 % 100}.{os.getpid() % 250}"
        self._made = False

    def _is_ok(self) -> bool:
        return self.run("bhosts -noheader -o status", ok=False).stdout.split() == ["ok"] * len(self.hosts)

    def link(self, host: str, state: Literal["up", "down"]) -> None:
        """Cut a host off, or connect it again."""
        _ip("link", "set", f"{self._tag}v{self.hosts.index(host) + 1}", state)

    def address(self, host: str) -> str:
        """Where a host is reached."""
        return f"{self._net}.{self.hosts.index(host) + 1}"

    def up(self) -> None:
        """Start what is not running."""
        if not self._made:
            super().up()
            self.lava("down", "--dir", str(self.folder.path))
            self._make()
            self._made = True
        master = f"{self._net}.254:16879"
        folder = self.folder
        database = folder.run / "database"
        if not find_pid(folder, "lavad"):
            self._start("lavad", "lavad.main", [], [
                "--conf", str(folder.conf), "--run", str(folder.run), "--host", "host1", "--number", "1",
                "--listen", master, "--database-file", str(database), "--log", str(folder.log / "lavad.log"),
            ])  # fmt: skip
        for host in self.hosts:
            if not find_pid(folder, f"agent-{host}"):
                named = ["unshare", "-u", "sh", "-c", 'hostname "$0"; exec "$@"', host]
                inside = ["ip", "netns", "exec", f"{self._tag}{host}", *named]
                self._start(f"agent-{host}", "agent.main", inside, [
                    "--host", host, "--conf", str(folder.conf), "--run", str(folder.run), "--spool", str(folder.spool / host),
                    "--master", master, "--address", self.address(host), "--pidfile", str(folder.pid_file(f"agent-{host}")),
                    "--log", str(folder.log / f"agent-{host}.log"),
                ])  # fmt: skip
        wait_until(self._is_ok, 30, self.logs)

    def __exit__(self, *what: object) -> None:
        try:
            super().__exit__(*what)
        finally:
            for host in self.hosts:
                subprocess.run(["ip", "netns", "del", f"{self._tag}{host}"], capture_output=True, check=False)
            subprocess.run(["ip", "link", "del", self._tag], capture_output=True, check=False)

    def sent(self, host: str) -> int:
        """Bytes that the host has sent over its link."""
        return int(self.inside(host, "cat /sys/class/net/eth0/statistics/tx_bytes").stdout)

    def inside(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line of shell in a host's network."""
        words = ["ip", "netns", "exec", f"{self._tag}{host}", "sh", "-c", command]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)

    def _make(self) -> None:
        tls = self.folder.path / "tls"
        done = self.lava("certs", "--out", str(tls), "--master", f"{self._net}.254", "--hosts", *self.hosts)
        assert done.returncode == 0, done.stderr
        with (self.folder.conf / "lsf.conf").open("a") as file:
            file.write(f'\nLAVA_TLS_DIR="{tls}"\n')
        _ip("link", "add", self._tag, "type", "bridge")
        _ip("addr", "add", f"{self._net}.254/24", "dev", self._tag)
        _ip("link", "set", self._tag, "up")
        for number, host in enumerate(self.hosts, 1):
            space, link = f"{self._tag}{host}", f"{self._tag}v{number}"
            _ip("netns", "add", space)
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", link, "master", self._tag, "up")
            _ip("-n", space, "addr", "add", f"{self._net}.{number}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def _start(self, name: str, module: str, before: list[str], words: list[str]) -> None:
        code = _CODE.format(root=str(ROOT), module=module)
        with (self.folder.log / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*before, sys.executable, "-I", "-c", code, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                start_new_session=True,
            )  # fmt: skip
        wait_until(lambda: find_pid(self.folder, name) == process.pid or process.poll() is not None, 60, f"{name} to start")
        assert process.poll() is None, self.logs()

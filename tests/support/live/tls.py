"""A cluster that talks over TLS on loopback, as a site's does over its network; and an agent of one's own with a certificate."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from cli.local.daemons import find_pid
from cli.local.folder import ROOT
from proto import agent_pb2 as pb
from proto import agent_pb2_grpc as pb_grpc
from tests.support.live.cluster import Cluster
from tests.support.wait import SLOW, wait_until

_CODE = "import sys; sys.path.insert(0, {root!r}); from {module} import main; sys.exit(main(sys.argv[1:]))"


class TlsCluster(Cluster):
    """Its hosts run, but those in ``without`` have no agent. ``tls``: the folder of the certificates."""

    def __init__(self, folder: Path, hosts: int = 1, slots: int = 4, without: tuple[str, ...] = (), conf: str = "") -> None:
        super().__init__(folder, hosts, slots)
        self.tls = folder / "tls"
        self.address = ""
        self._without = without
        self._conf = conf

    def up(self) -> None:
        """Start what is not running."""
        if not self.address:
            super().up()
            self.lava("down", "--dir", str(self.folder.path))
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.address = f"127.0.0.1:{free.getsockname()[1]}"
            self.certs("--master", "127.0.0.1", "--hosts", *self.hosts)
            with (self.folder.conf / "lsf.conf").open("a") as file:
                file.write(f'\nLAVA_TLS_DIR="{self.tls}"\n{self._conf}')
        folder = self.folder
        places = ["--conf", str(folder.conf), "--run", str(folder.run)]
        if not find_pid(folder, "lavad"):
            self._start("lavad", "lavad.main", [
                *places, "--host", "host1", "--listen", self.address, "--log", str(folder.log / "lavad.log"),
                "--database-file", str(folder.run / "database"),
            ])  # fmt: skip
        for host in set(self.hosts) - set(self._without):
            if not find_pid(folder, f"agent-{host}"):
                self._start(f"agent-{host}", "agent.main", [
                    *places, "--host", host, "--spool", str(folder.spool / host), "--master", self.address,
                    "--pidfile", str(folder.pid_file(f"agent-{host}")), "--log", str(folder.log / f"agent-{host}.log"),
                ])  # fmt: skip
        there = len(self.hosts) - len(self._without)
        wait_until(lambda: self.status().count("ok") >= there, 30, self.logs)

    def status(self) -> list[str]:
        """The state of each host."""
        return self.run("bhosts -noheader -o status", ok=False).stdout.split()

    def certs(self, *words: str) -> str:
        """``lava certs`` in the folder of the certificates; what it says."""
        done = self.lava("certs", "--out", str(self.tls), *words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def _start(self, name: str, module: str, words: list[str]) -> None:
        code = _CODE.format(root=str(ROOT), module=module)
        with (self.folder.log / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", code, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                start_new_session=True,
            )  # fmt: skip
        wait_until(lambda: find_pid(self.folder, name) == process.pid or process.poll() is not None, 60, f"{name} to start")
        assert process.poll() is None, self.logs()


class Impostor:
    """A client with a certificate of the cluster's authority, which says whatever it likes. Use it in a ``with``."""

    def __init__(self, address: str, tls: Path, name: str) -> None:
        parts = [(tls / file).read_bytes() for file in ("ca.crt", f"{name}.key", f"{name}.crt")]
        self._channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*parts))
        self._stub = pb_grpc.AgentsStub(self._channel)
        self._out: queue.Queue[pb.FromAgent | None] = queue.Queue()
        self._stream: Iterator[pb.ToAgent] | None = None

    def __enter__(self) -> Impostor:
        return self

    def __exit__(self, *_: object) -> None:
        self._out.put(None)
        self._channel.close()

    def command(self, user: str, uid: int, **ask: Any) -> str:
        """Vouch for a user: the refusal of the call or of the ask, "" if it was done."""
        request = pb.CommandFrame(user=user, uid=uid, frame=json.dumps(ask).encode())
        try:
            answers = [json.loads(answer.frame) for answer in self._stub.Command(request, timeout=10 * SLOW)]
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"
        results = answers[-1].get("ok", {}).get("results", [])
        return str(answers[-1].get("refused") or " ".join(row["why"] for row in results))

    def greet(self, host: str, boot_id: str = "forged") -> str:
        """Open a stream as the agent of a host: the refusal, "" if there was a welcome."""
        self._out.put(pb.FromAgent(hello=pb.Hello(host=host, facts=pb.Facts(boot_id=boot_id, ncpus=4))))
        self._stream = self._stub.Session(iter(self._out.get, None), timeout=60 * SLOW)
        try:
            return "" if next(self._stream).HasField("welcome") else "no welcome"
        except grpc.RpcError as error:
            return f"{error.code().name}: {error.details()}"

    def say(self, **what: Any) -> None:
        """A message on the stream."""
        self._out.put(pb.FromAgent(**what))

    def wait_for_ack(self, serial: int) -> None:
        """Read until the reports up to this one are committed."""
        assert self._stream is not None
        assert any(message.acks.serial >= serial for message in self._stream), "no acknowledgement"

    def ended(self) -> str:
        """Read until the stream ends: how."""
        assert self._stream is not None
        try:
            for _ in self._stream:
                pass
        except grpc.RpcError as error:
            return error.code().name
        return "OK"

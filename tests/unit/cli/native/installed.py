"""Native commands in a folder of a test, and the servers that they start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from cli.install_commands import SERVER, install
from tests.support.wait import wait_until

ROOT = Path(__file__).resolve().parents[4]
TO_PLAIN = "#!/bin/sh\necho plain >&2\nexit 77\n"
"""In the place of a plain command: shows that it was taken."""
WAS_PLAIN = (77, b"", b"plain\n")


class Ran(NamedTuple):
    status: int
    out: bytes
    err: bytes


class Installed:
    """``plain`` holds the real plain commands, ``native`` the executables, whose plain commands only say that they were run."""

    def __init__(self, folder: Path, executable: bytes, root: Path = ROOT) -> None:
        self.folder = folder
        self.plain = folder / "plain"
        self.native = folder / "bin"
        install(str(self.plain), sys.executable, str(root))
        self.behind = folder / "lib" / "lava" / "plain"
        install(str(self.native), sys.executable, str(root), executable, str(self.behind))
        for path in self.behind.iterdir():
            if path.name != SERVER:
                path.write_text(TO_PLAIN)

    def start(self, environ: Mapping[str, str], **how: Any) -> None:
        """Have a server that answers callers with these settings."""
        self.served("bsub", "-V", environ=environ, **how)

    def run(
        self,
        command: str,
        *words: str,
        environ: Mapping[str, str],
        stdin: bytes | IO[bytes] = b"",
        plain: bool = False,
        **how: Any,
    ) -> Ran:
        """Run a command; bytes for stdin come through a pipe."""
        given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
        program = (self.plain if plain else self.native) / command
        done = subprocess.run([program, *words], env=dict(environ), capture_output=True, check=False, timeout=60, **given, **how)
        return Ran(done.returncode, done.stdout, done.stderr)

    def served(self, command: str, *words: str, environ: Mapping[str, str], **how: Any) -> Ran:
        """As a server does it; again where the machine was too busy for one to be ready in time."""

        def done() -> Ran | None:
            ran = self.run(command, *words, environ=environ, **how)
            return None if ran == WAS_PLAIN else ran

        return wait_until(done, 20, "a server") or Ran(*WAS_PLAIN)

    def processes(self) -> dict[int, int]:
        return processes(self.folder)

    def servers(self) -> list[int]:
        found = self.processes()
        return [pid for pid, parent in found.items() if parent not in found]

    def workers(self) -> list[int]:
        found = self.processes()
        return [pid for pid, parent in found.items() if parent in found]

    def kill_workers(self) -> None:
        """Those that are there; one may end meanwhile."""
        for pid in self.workers():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End all of them."""

        def ended() -> bool:
            # again, as a worker may have begun just now that outlives its server for a while
            for pid in self.processes() if number == signal.SIGKILL else self.servers():
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            return not self.processes()

        wait_until(ended, 30, lambda: f"the end of {self.processes()}")


def processes(folder: Path) -> dict[int, int]:
    """Servers below a folder, and their workers: pid -> parent."""
    found: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if any(word.startswith(os.fsencode(folder)) and word.endswith(SERVER.encode()) for word in words):
                found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    return found

"""MPS, NVIDIA's Multi-Process Service: the control daemons of a part, started as its user before its tasks.

Rule: the daemons are children of the shepherd, in whatever way they go into the background. So they end with what the part leaves
behind, by its kill, and by the starter where the shepherd is dead. Of its own the program is only asked to quit.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time

from agent.starter.process import tasks
from agent.starter.process.spec import Spec, encode_env
from agent.starter.protocol.part import MpsSpec
from agent.starter.system import scratch
from agent.starter.system.stdio import Refused, one_line

PROGRAM = "nvidia-cuda-mps-control"
STARTS_WITHIN = 10.0
QUITS_WITHIN = 1.0
_LOOK = 0.01
_SAID = "start.log"


class Mps:
    """The daemons of one part. ``host``: its name, for messages."""

    def __init__(self, spec: Spec, host: str) -> None:
        self._spec = spec
        self._host = host
        self._begun: list[MpsSpec] = []

    def start(self) -> None:
        """Start all; Refused when one does not start."""
        for daemon in self._spec.part.mps:
            self._make_folders(daemon)
            code = self._run(daemon, ["-d"], b"", STARTS_WITHIN)
            if code != 0:
                how = f"did not start within {STARTS_WITHIN:.0f} s" if code is None else f"ended with {code}"
                raise Refused("gpu", f"host {self._host}: {PROGRAM} {how}{self._said(daemon)}")

    def quit(self) -> None:
        """Ask the daemons to end, now that their clients have."""
        for daemon in self._begun:
            with contextlib.suppress(Refused):
                self._run(daemon, [], b"quit\n", QUITS_WITHIN)

    def close(self) -> None:
        """The part is gone: remove their folders."""
        for daemon in self._begun:
            scratch.remove(daemon.folder)
        self._begun.clear()

    def _make_folders(self, daemon: MpsSpec) -> None:
        try:
            if scratch.make_own(daemon.folder) != daemon.folder:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
            self._begun.append(daemon)
            for folder in daemon.variables.values():
                os.makedirs(folder, 0o700, exist_ok=True)
        except (OSError, ValueError) as e:
            raise Refused("gpu", f"host {self._host}: {daemon.folder}: {getattr(e, 'strerror', None) or e}") from None

    def _run(self, daemon: MpsSpec, words: list[str], said: bytes, seconds: float) -> int | None:
        """Run the program with these words and this on its standard input: its exit code, None where it took too long."""
        env = {**self._spec.env, **encode_env({"CUDA_VISIBLE_DEVICES": daemon.gpus, **daemon.variables})}
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        opened: list[int] = []
        try:
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            opened += (read_end, write_end)
            log = os.open(os.path.join(daemon.folder, _SAID), flags, 0o600)
            opened.append(log)
            os.write(write_end, said)
            programs = tasks.candidates(PROGRAM, self._spec.path)
            pid = tasks.start([PROGRAM, *words], programs, list(env.values()), (read_end, log, log))
        except OSError as e:
            raise Refused("gpu", f"host {self._host} cannot run {PROGRAM}, which mps= needs: {e.strerror}") from None
        finally:
            for fd in opened:
                os.close(fd)
        return _exit_code(pid, seconds)

    def _said(self, daemon: MpsSpec) -> str:
        with contextlib.suppress(OSError), open(os.path.join(daemon.folder, _SAID), errors="replace") as file:
            if text := one_line(file.read(500).strip()):
                return f": {text}"
        return ""


def _exit_code(pid: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while not (found := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        time.sleep(_LOOK)
    return os.waitstatus_to_exitcode(found[1])

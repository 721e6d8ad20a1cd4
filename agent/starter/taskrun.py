"""One task that was started for ``blaunch`` on this host: its process, its three pipes, and how much of each may flow.

Rule: a task's pipe is read only while the one who asked has granted room, and what was read before its end is told first.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent.starter import kernel, proctree, tasks
from agent.starter import taskwire as wire
from agent.starter.binding import bound
from agent.starter.rlimits import Limits
from agent.starter.spec import Spec, encode_env
from agent.starter.watch import WRITE, Watch

EXIT_TO_EOF = 0.5
"""Seconds that output of what a task left behind is still waited for."""
TERM_TO_KILL = 2.0
SHELL = "/bin/sh"

_OF_A_HOST = (
    "HOSTNAME HOSTTYPE LAVA_SOCKET LAVA_HOST LAVA_TASKS LAVA_TOKEN LAVA_ATTEMPT CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER"
    " LSB_JOBFILENAME LSB_CHKFILENAME XLSF_UIDDIR LSB_BIND_CPU_LIST LSB_AFFINITY_HOSTFILE"
)
HOST_OWN = frozenset(_OF_A_HOST.split())
"""Variables that are what this host's part says, whatever the caller's are."""
_NOT_PASSED_ON = ("PMI_", "PMIX_", "OMPI_COMM_", "OMPI_APP_", "OMPI_MCA_ess", "OMPI_MCA_orte_ess", "PRTE_MCA_ess")
_RANKS_OWN = frozenset(("MPI_LOCALRANKID", "MPI_LOCALNRANKS", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_local_daemon_uri"))

# (kind, body): a frame to the one who asked
Say = Callable[[int, bytes], None]


def environment(spec: Spec, given: Mapping[str, Any], task_id: int) -> dict[str, bytes]:
    """The part's variables, the caller's over them; what makes a process a rank of another launch is not passed on."""
    passed = {
        name: value
        for name, value in given.items()
        if name not in HOST_OWN and name not in _RANKS_OWN and not name.startswith(_NOT_PASSED_ON)
    }
    return {**spec.env, **encode_env(passed), "LSF_PM_TASKID": b"LSF_PM_TASKID=%d" % task_id}


def program(asked: Mapping[str, Any], env: Mapping[str, bytes]) -> list[str]:
    """What is run: the words themselves, or the words joined by blanks for a shell, as rsh does."""
    words = [str(word) for word in asked["words"]]
    how = asked.get("shell", "sh")
    if how == "none":
        return words
    if how == "login":
        shell = os.fsdecode(env.get("SHELL", b"")[6:]) or SHELL
        return [shell, "-l", "-c", " ".join(words)]
    return [SHELL, "-c", " ".join(words)]


class TaskRun:
    """A task; ``say`` goes to the one who asked for it, ``over`` is true when nothing more will be said."""

    def __init__(self, watch: Watch, say: Say) -> None:
        self.pid = 0
        self.over = False
        self._watch = watch
        self._say = say
        self._stdin = -1
        self._to_write = bytearray()
        self._input_ended = False
        self._of: dict[int, int] = {}  # pipe -> stream
        self._room = {wire.OUT: wire.WINDOW, wire.ERR: wire.WINDOW}
        self._code: int | None = None
        self._due: float | None = None
        self._groups: set[int] = set()

    def start(self, spec: Spec, asked: Mapping[str, Any], limits: Limits) -> None:
        """Start it; what a shell would say of a program that is not there is said on its standard error."""
        env = environment(spec, asked.get("env") or {}, int(asked.get("task", 1)))
        argv = program(asked, env)
        self._enter(asked, spec)
        theirs: list[int] = []
        try:
            fds = self._pipes(bool(asked.get("stdin")), theirs)
            path = os.fsdecode(env["PATH"][5:]) if "PATH" in env else None
            programs = tasks.candidates(argv[0], path)
            with bound(spec.get("bind")) as said:
                self.pid = tasks.start(argv, programs, list(env.values()), fds, (), limits, int(spec.get("nice", 0)))
            if said:
                self._say(wire.DATA, wire.data(wire.ERR, said))
        except (OSError, ValueError) as e:
            code, line = tasks.as_a_shell_says(argv[0], e)
            self._say(wire.DATA, wire.data(wire.ERR, line))
            self._code = code
        finally:
            os.chdir("/")
            for fd in theirs:
                os.close(fd)
        if self.pid:
            self._say(wire.STARTED, b"%d" % self.pid)
            if self._stdin >= 0:
                self._say(wire.CREDIT, wire.credit(wire.IN, wire.WINDOW))
        else:
            self._finish()

    def _enter(self, asked: Mapping[str, Any], spec: Spec) -> None:
        fallback = spec.get("cwd_else", [])
        for folder in (asked.get("cwd"), spec.get("cwd"), *([fallback] if isinstance(fallback, str) else fallback), "/tmp"):
            try:
                os.chdir(str(folder or "/"))
                return
            except (OSError, ValueError):
                continue

    def _pipes(self, with_input: bool, theirs: list[int]) -> tuple[int, int, int]:
        if with_input:
            read_end, self._stdin = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(self._stdin, False)
        else:
            read_end = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        theirs.append(read_end)
        for stream in (wire.OUT, wire.ERR):
            ours, write_end = os.pipe2(os.O_CLOEXEC)
            theirs.append(write_end)
            os.set_blocking(ours, False)
            self._of[ours] = stream
            self._watch.add(ours, lambda _, fd=ours: self._ready(fd))  # type: ignore[misc]
        return theirs[0], theirs[1], theirs[2]

    # -- from the one who asked ----------------------------------------------------------------------------------------

    def take(self, frame: wire.Frame) -> None:
        """A frame for the task."""
        if frame.kind == wire.DATA:
            self._input(frame.body[1:])
        elif frame.kind == wire.CREDIT:
            self._grant(*wire.read_credit(frame.body))
        elif frame.kind == wire.SIGNAL and frame.body and 0 < frame.body[0] <= 64:
            self.signal(frame.body[0])
        elif frame.kind == wire.ABANDON:
            self.abandon()

    def signal(self, sig: int) -> None:
        """Signal every process group that the task has."""
        if self.pid and self._code is None:
            proctree.signal_groups({self.pid, *proctree.below([self.pid])}, sig)

    def abandon(self) -> None:
        """Nobody waits for it any more: it is asked to end, then ended. What is behind its end already is left alone."""
        self._say = _unheard
        self._close_input()
        if self._code is not None or not self.pid:
            self._finish()
            return
        self._room = {wire.OUT: 1 << 62, wire.ERR: 1 << 62}
        self._resume()
        self._groups = {self.pid, *proctree.below([self.pid])}
        proctree.signal_groups(self._groups, signal.SIGTERM)
        self._due = time.monotonic() + TERM_TO_KILL

    def _input(self, content: bytes) -> None:
        if not content:
            self._input_ended = True
        elif self._stdin < 0:
            self._say(wire.CREDIT, wire.credit(wire.IN, len(content)))
            return
        else:
            self._to_write += content
        self._write()

    def _write(self, _: int = 0) -> None:
        if self._stdin < 0:
            return
        written = 0
        try:
            while self._to_write:
                count = os.write(self._stdin, self._to_write[: wire.CHUNK])
                written += count
                del self._to_write[:count]
        except BlockingIOError:
            pass
        except OSError:
            # The task reads no more: what still comes is taken and dropped.
            written += len(self._to_write)
            self._close_input()
        if written:
            self._say(wire.CREDIT, wire.credit(wire.IN, written))
        if self._stdin < 0:
            return
        self._watch.remove(self._stdin)
        if self._to_write:
            self._watch.add(self._stdin, self._write, WRITE)
        elif self._input_ended:
            self._close_input()

    def _close_input(self) -> None:
        if self._stdin >= 0:
            self._watch.remove(self._stdin)
            os.close(self._stdin)
            self._stdin = -1
        self._to_write.clear()

    # -- output --------------------------------------------------------------------------------------------------------

    def _grant(self, stream: int, count: int) -> None:
        if stream in self._room:
            self._room[stream] += count
            self._resume()
            self._look_at_end()

    def _resume(self) -> None:
        for fd, stream in list(self._of.items()):
            if self._room[stream] > 0:
                self._watch.remove(fd)
                self._watch.add(fd, lambda _, fd=fd: self._ready(fd))  # type: ignore[misc]

    def _ready(self, fd: int) -> None:
        self._read(fd)
        self._look_at_end()

    def _read(self, fd: int) -> bool:
        """True when there may be more."""
        stream = self._of.get(fd)
        if stream is None:
            return False
        room = self._room[stream]
        if room <= 0:
            self._watch.remove(fd)
            return False
        try:
            content = os.read(fd, min(room, wire.CHUNK))
        except BlockingIOError:
            return False
        except OSError:
            content = b""
        if not content:
            self._close_output(fd)
            return False
        self._room[stream] -= len(content)
        self._say(wire.DATA, wire.data(stream, content))
        return True

    def _close_output(self, fd: int) -> None:
        del self._of[fd]
        self._watch.remove(fd)
        os.close(fd)

    # -- end -----------------------------------------------------------------------------------------------------------

    def ended(self, seen: kernel.Ended) -> None:
        """Its process ended: the rest of its output, then its exit code."""
        code = os.waitstatus_to_exitcode(seen[1])
        self._code = 128 - code if code < 0 else code
        self._due = time.monotonic() + EXIT_TO_EOF
        self._close_input()
        for fd in list(self._of):
            while self._read(fd):
                pass
        self._look_at_end()

    def _look_at_end(self) -> None:
        """It is over when both pipes are; one that stays open in a process left behind is waited for a moment only."""
        if self._code is not None and not self.over and not self._of:
            self._finish()

    def _finish(self) -> None:
        if self.over:
            return
        self.over = True
        self._due = None
        for fd in list(self._of):
            self._close_output(fd)
        self._close_input()
        self._say(wire.EXIT, wire.exit_body(0 if self._code is None else self._code))

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return self._due

    def on_time(self, now: float) -> None:
        """Processes left behind hold its pipes, or what was asked to end did not."""
        if self._due is None or now < self._due:
            return
        self._due = None
        if self._code is None:
            proctree.signal_groups({*self._groups, self.pid, *proctree.below([self.pid])}, signal.SIGKILL)
        elif any(self._room[stream] <= 0 for stream in self._of.values()):
            # What it said is still in its pipe: it waits for room, not for those left behind.
            self._due = now + EXIT_TO_EOF
        else:
            self._finish()

    def close(self) -> None:
        """The part is over."""
        self._say = _unheard
        self._finish()


def arguments(body: Sequence[Any]) -> bool:
    """Whether these can be the words of a command."""
    return bool(body) and all(isinstance(word, str) and "\0" not in word for word in body)


def _unheard(_: int, __: bytes) -> None:
    pass

"""The ranks of a job on this host: their PMI, their output, and the verdict when one of them fails.

Rule: the first rank that aborts, dies inside MPI or ends with an error ends the whole gang, with its status.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

from agent.starter.mpi.pmi import Abort, Action, Barrier, Broken, Pmi, Send
from agent.starter.mpi.rankio import ERR, OUT, RankOutput
from agent.starter.process import account
from agent.starter.process.account import Task
from agent.starter.process.prepare import Files
from agent.starter.process.spec import Spec
from agent.starter.system.stdio import Refused, open_output, write_all
from agent.starter.system.watch import Watch
from agent.starter.terminal.terminal import Terminal

EOF_TO_EXIT = 0.5
DONE_SECONDS = 10.0


def is_gang(spec: Spec) -> bool:
    """More than one plain process: its output goes through pipes, and one failure ends all."""
    return bool(spec.get("led") or spec.get("pmi") or spec.get("link") or spec.get("label") or len(spec.tasks) > 1)


class Gang:
    """``say`` gets ready (start the tasks), failed (end them) and over (look whether this is the end)."""

    def __init__(self, spec: Spec, host: str, files: Files, watch: Watch, say: Callable[[str], None]) -> None:
        self.first: dict[str, Any] | None = None
        self.failed = False
        self.use: dict[str, Any] | None = None
        """What the agent saw of this host's ranks, for the first host."""
        self._failed_at: float | None = None
        self._killed = False
        self._quits = False
        self._spec = spec
        self._host = host
        self._files = files
        self._watch = watch
        self._say = say
        self._ranks = [int(t.get("rank", -1)) for t in spec.tasks]
        self._tasks: list[Task] = []
        self._to_start = len(self._ranks)
        self._led = bool(spec.get("led"))
        labels = {int(t.get("rank", -1)): str(t.get("label") or t.get("rank", -1)) for t in spec.tasks}
        self._output = RankOutput(watch, labels if spec.get("label") else {}, self._put)
        self._pmi_of: dict[int, socket.socket] = {}
        self._eof_at: dict[int, float] = {}
        self._childs: list[int] = []
        self._stdin = -1
        self._net: Any = None
        self._terminal: Terminal | None = None
        self._is_leaf = (spec.get("link") or {}).get("role") == "leaf"
        pmi = spec.get("pmi")
        self._pmi: Pmi | None = None
        if pmi:
            self._pmi = Pmi(str(pmi["kvsname"]), int(pmi["size"]), str(pmi.get("mapping") or ""), self._ranks)

    def give_output_to(self, terminal: Terminal | None) -> None:
        """The user of an interactive part gets what the ranks write; while they do not read, the ranks wait."""
        self._terminal = terminal
        if terminal is not None:
            terminal.resume = self._go_on

    def _go_on(self, may: bool) -> None:
        self._output.pause(not may)
        if self._net and not self._is_leaf:
            self._net.pause(not may)

    # -- hosts -------------------------------------------------------------------------------------------------------

    def listen(self) -> None:
        """Make ready for the other hosts; Refused when that cannot be."""
        link = self._spec.get("link")
        if not link:
            return
        from agent.starter.mpi import gangnet
        from agent.starter.wire.link import Identity

        try:
            identity = Identity(link["cert"], link["key"])
            if link["role"] == "root":
                bind = link.get("bind") or "127.0.0.1"
                elastic = bool(link.get("elastic"))
                self._net = gangnet.RootNet(int(link["nodes"]), bind, identity, self._watch, self._net_says, elastic)
            else:
                self._net = gangnet.LeafNet(self._host, identity, self._watch, self._net_says)
        except OSError as e:
            raise Refused("bad", f"link of {self._spec.get('title', '')}: {e.strerror or e}") from None

    def address(self) -> list[Any] | None:
        """Where leaves connect to."""
        found: list[Any] | None = self._net.address() if self._net else None
        return found

    def go(self, root: list[Any] | None) -> None:
        """Start, or connect first."""
        if self._net:
            self._net.go(root)
        else:
            self._say("ready")

    def _net_says(self, what: str, content: Any) -> None:
        if what in ("ready", "over"):
            self._say(what)
        elif what == "barrier" and self._pmi:
            self._act(self._pmi.release(content))
        elif what == "out":
            self._write(*content)
        elif what in ("fail", "end"):
            self._fail(content, tell=what == "fail")
        elif what == "room":
            self._output.pause(not content)

    # -- start -------------------------------------------------------------------------------------------------------

    def files_of(self, task: dict[str, Any]) -> tuple[dict[str, str], tuple[int, int, int], list[int]]:
        """(environment, files 0 1 2, further files to inherit) of a task; ``started`` closes the child's ends."""
        rank = int(task.get("rank", -1))
        first = self._ranks and rank == min(self._ranks)
        stdin = self._files.stdin if first else self._null()
        out = self._own(open_output(task["stdout"]) if task.get("stdout") else self._output.new(rank, OUT))
        err = out
        if task.get("stderr"):
            err = self._own(open_output(task["stderr"]))
        elif self._spec.get("stderr") is not None and not task.get("stdout"):
            err = self._own(self._output.new(rank, ERR))
        if not self._pmi:
            return {}, (stdin, out, err), []
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._pmi_of[rank] = ours
        self._watch.add(ours.fileno(), lambda _: self._pmi_event(rank))
        fd = self._own(theirs.detach())
        env = {
            "PMI_FD": str(fd),
            "PMI_RANK": str(rank),
            "PMI_SIZE": str(self._pmi.size),
            "MPI_LOCALRANKID": str(self._ranks.index(rank)),
            "MPI_LOCALNRANKS": str(len(self._ranks)),
        }
        return env, (stdin, out, err), [fd]

    def _own(self, fd: int) -> int:
        self._childs.append(fd)
        return fd

    def _null(self) -> int:
        if self._stdin < 0:
            self._stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        return self._stdin

    def started(self, task: Task) -> None:
        """A task was started, or not; its ends of pipes and sockets are closed here."""
        self._tasks.append(task)
        self._to_start -= 1
        for fd in self._childs:
            os.close(fd)
        self._childs.clear()

    # -- end ---------------------------------------------------------------------------------------------------------

    def task_ended(self, task: Task) -> None:
        """Everything it said is taken first; then its end may be the gang's."""
        self._output.drain(task.rank)
        self._eof_at.pop(task.rank, None)
        if task.rank in self._pmi_of:
            while self._pmi_ready(task.rank):
                pass
        status = task.status or 0
        if self._led:
            return  # what it means, the master says
        if self._quits:
            return
        if status:
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self._fail({"rank": task.rank, "status": status, "reason": f"rank {task.rank} {how} on {self._host}"})
        elif self._pmi and self._pmi.unfinished(task.rank):
            self._fail_unfinished(task.rank)

    def _fail_unfinished(self, rank: int) -> None:
        reason = f"rank {rank} on {self._host} ended without MPI_Finalize"
        self._fail({"rank": rank, "status": 1 << 8, "reason": reason})

    def _fail(self, first: dict[str, Any], tell: bool = True) -> None:
        if self.failed:
            return
        self.failed = True
        self.first = first
        self._failed_at = time.monotonic()
        if self._net and (tell or not self._is_leaf):
            self._net.fail(first)
        self._say("failed")

    def finish(self, first: dict[str, Any] | None, leave: bool) -> None:
        """The master has decided the end, on all hosts: end the tasks, or (``leave``) let them end."""
        if self.failed:
            return
        self.failed = True
        self.first = first
        if not leave:
            self._failed_at = time.monotonic()
            self._say("failed")

    def quit(self) -> None:
        """The job goes on without this host: its tasks may end as they like."""
        self._quits = True
        if self._net and not self.failed:
            self._net.fail({"rank": -1, "status": 9, "reason": f"{self._host} has left the job"})

    def leave(self, tell: bool) -> None:
        """This host's part is being killed: the other hosts must not wait for it. Untold, they see the link break."""
        if not self.failed:
            self.failed = self._killed = True
            self._failed_at = time.monotonic()
            if self._net and not tell:
                self._net.close()
            elif self._net:
                self._net.fail({"rank": -1, "status": 9, "reason": f"the part on {self._host} was killed"})

    def over(self) -> bool:
        """True when nothing of the gang is left to wait for."""
        waits = (self._to_start or self._led) and not self.failed
        if waits or any(t.status is None for t in self._tasks):
            return False
        if not self._net:
            return True
        self._output.drain()
        if self._is_leaf:
            self._net.done(account.story_of_leaf(self._host, self._tasks, self.use))
        return bool(self._net.over(self._failed_at))

    def verdict(self) -> dict[str, Any]:
        """What END has of it: the rank that failed first; on the first host, what the other hosts told of their tasks."""
        others = self._net.others if self._net and not self._is_leaf else []
        return {"first": self.first, "others": others} if others else {"first": self.first}

    def status(self) -> int:
        """The wait status of the gang."""
        if self.first is not None:
            return int(self.first["status"])
        if self._killed:
            return next((t.status for t in self._tasks if t.status), 9)
        return 0

    def flush(self) -> None:
        """Write what the ranks left in their pipes."""
        self._output.drain()

    def close(self) -> None:
        """Close everything that is open."""
        self._output.close()
        for sock in self._pmi_of.values():
            self._close_pmi(sock)
        self._pmi_of.clear()
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        if self._net:
            self._net.close()

    # -- time --------------------------------------------------------------------------------------------------------

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        times = list(self._eof_at.values())
        if self._net:
            if self._failed_at is not None:
                times.append(self._failed_at + DONE_SECONDS)
            if (at := self._net.wake_at()) is not None:
                times.append(at)
        return min(times, default=None)

    def on_time(self) -> None:
        """A rank that closed its PMI and lives on has left the gang; late hosts are given up."""
        now = time.monotonic()
        for rank, at in list(self._eof_at.items()):
            if at <= now:
                del self._eof_at[rank]
                self._fail_unfinished(rank)
        if not self._net:
            return
        self._net.on_time()
        if self._failed_at is not None and now >= self._failed_at + DONE_SECONDS:
            self._failed_at = float("-inf")
            self._say("over")

    # -- pmi ---------------------------------------------------------------------------------------------------------

    def _pmi_event(self, rank: int) -> None:
        self._pmi_ready(rank)

    def _pmi_ready(self, rank: int) -> bool:
        sock = self._pmi_of.get(rank)
        if sock is None or self._pmi is None:
            return False
        try:
            data = sock.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            del self._pmi_of[rank]
            self._close_pmi(sock)
            if self._pmi.unfinished(rank):
                self._eof_at[rank] = time.monotonic() + EOF_TO_EXIT
            return False
        self._act(self._pmi.feed(rank, data))
        return True

    def _close_pmi(self, sock: socket.socket) -> None:
        self._watch.remove(sock.fileno())
        sock.close()

    def _act(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Send):
                self._send_pmi(action)
            elif isinstance(action, Barrier):
                self._barrier(action.puts)
            elif isinstance(action, Abort):
                status = (action.code & 0xFF or 1) << 8
                reason = f"rank {action.rank} on {self._host} called abort with code {action.code}"
                self._fail({"rank": action.rank, "status": status, "reason": reason})
            elif isinstance(action, Broken):
                self._fail({"rank": action.rank, "status": 1 << 8, "reason": action.text})

    def _barrier(self, puts: dict[str, str]) -> None:
        assert self._pmi is not None
        if self._net:
            self._net.barrier(puts)
        else:
            self._act(self._pmi.release(puts))

    def _send_pmi(self, action: Send) -> None:
        sock = self._pmi_of.get(action.rank)
        if sock is None:
            return
        try:
            sent = sock.send(action.data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return
        if sent != len(action.data):
            # Every answer is awaited before the next question: a full socket means a rank that does not read.
            self._fail({"rank": action.rank, "status": 1 << 8, "reason": f"rank {action.rank} does not read its PMI"})

    # -- output ------------------------------------------------------------------------------------------------------

    def _put(self, stream: int, lines: bytes) -> None:
        if self._is_leaf:
            self._net.out(stream, lines)
        else:
            self._write(stream, lines)

    def _write(self, stream: int, lines: bytes) -> None:
        takes = self._terminal is not None and self._terminal.takes(stream)
        if self._terminal is not None and (takes or self._terminal.tees):
            self._terminal.put(stream, lines)
        if takes:
            return
        fd = self._files.stderr if stream == ERR else self._files.stdout
        if fd >= 0:
            write_all(fd, lines)

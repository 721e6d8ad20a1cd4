"""The ranks of a job on this host: their PMI, their output, and the verdict when one of them fails.

Rule: the first rank that aborts, dies inside MPI or ends with an error ends the whole gang, with its status.
"""

from __future__ import annotations

import os
import socket
import time
from enum import Enum
from typing import TYPE_CHECKING

from agent.starter.mpi.pmi import Abort, Action, Barrier, Broken, Pmi, Send
from agent.starter.mpi.rankio import ERR, OUT, RankOutput
from agent.starter.process import account
from agent.starter.process.account import Task
from agent.starter.process.prepare import Files
from agent.starter.process.spec import Spec
from agent.starter.protocol.part import TaskSpec
from agent.starter.protocol.reports import End, FirstFailure, HostUse, Root
from agent.starter.system.stdio import open_output, write_all
from agent.starter.system.watch import Watch
from agent.starter.terminal.terminal import Terminal

if TYPE_CHECKING:  # ``ssl`` is loaded only where a job spans hosts
    from agent.starter.mpi.rank_network import LeafRankNetwork, RankNetworkEvent, RootRankNetwork
    from agent.starter.wire.job_network import JobNetwork

EOF_TO_EXIT = 0.5
DONE_SECONDS = 10.0


def is_gang(spec: Spec) -> bool:
    """More than one plain process: its output goes through pipes, and one failure ends all."""
    part = spec.part
    ranks = part.link is not None and part.link.ranks
    return bool(part.led or part.pmi or ranks or part.label or len(spec.tasks) > 1)


class GangEvent(Enum):
    """What happens to a gang; queued in ``Gang.events`` for whoever runs the part."""

    READY = "ready"
    """The tasks may start."""
    FAILED = "failed"
    """End the tasks that run."""
    OVER = "over"
    """Another host is done: check whether the gang is."""


class Gang:
    """The ranks of one part."""

    def __init__(self, spec: Spec, host: str, files: Files, watch: Watch) -> None:
        self.events: list[GangEvent] = []
        """What nobody has taken yet."""
        self.first: FirstFailure | None = None
        self.failed = False
        self.use: HostUse | None = None
        """What the agent saw of this host's ranks, for the first host."""
        self._failed_at: float | None = None
        self._killed = False
        self._quits = False
        self._spec = spec
        self._host = host
        self._files = files
        self._watch = watch
        self._ranks = [t.rank for t in spec.tasks]
        self._tasks: list[Task] = []
        self._to_start = len(self._ranks)
        self._led = spec.part.led
        labels = {t.rank: t.label or str(t.rank) for t in spec.tasks}
        self._output = RankOutput(watch, labels if spec.part.label else {}, self._put)
        self._pmi_of: dict[int, socket.socket] = {}
        self._eof_at: dict[int, float] = {}
        self._childs: list[int] = []
        self._stdin = -1
        self._network: JobNetwork | None = None
        self._root: RootRankNetwork | None = None
        """The link to the other hosts, on the first one."""
        self._leaf: LeafRankNetwork | None = None
        """The same on every other one."""
        self._terminal: Terminal | None = None
        pmi = spec.part.pmi
        self._pmi: Pmi | None = Pmi(pmi.kvsname, pmi.size, pmi.mapping, self._ranks) if pmi else None

    def give_output_to(self, terminal: Terminal | None) -> None:
        """The user of an interactive part gets what the ranks write; while they do not read, the ranks wait."""
        self._terminal = terminal

    def pause_output(self, paused: bool) -> None:
        """The user does not read, or does again."""
        self._output.pause(paused)
        if self._root:
            self._root.pause(paused)

    @property
    def _net(self) -> RootRankNetwork | LeafRankNetwork | None:
        return self._root or self._leaf

    # -- hosts -------------------------------------------------------------------------------------------------------

    def join(self, network: JobNetwork) -> None:
        """The ranks of the other hosts are reached by this network."""
        from agent.starter.mpi import rank_network
        from agent.starter.wire.job_network import RootNetwork

        link = self._spec.part.link
        assert link is not None
        self._network = network
        if isinstance(network, RootNetwork):
            self._root = rank_network.RootRankNetwork(network, link.nodes, link.elastic, self._from_net)
        else:
            self._leaf = rank_network.LeafRankNetwork(network, self._from_net)

    def go(self, root: Root | None) -> None:
        """Start, or connect first."""
        if self._net:
            self._net.go(root)
        else:
            self.events.append(GangEvent.READY)

    def _from_net(self, event: RankNetworkEvent) -> None:
        from agent.starter.mpi import rank_network as net

        match event:
            case net.Linked():
                self.events.append(GangEvent.READY)
            case net.PeerOver():
                self.events.append(GangEvent.OVER)
            case net.BarrierPassed(puts):
                if self._pmi:
                    self._act(self._pmi.release(puts))
            case net.Output(stream, lines):
                self._write(stream, lines)
            case net.Failed(first):
                self._fail(first)
            case net.EndedByRoot(first):
                self._fail(first, tell=False)
            case net.Backlog(free):
                self._output.pause(not free)

    # -- start -------------------------------------------------------------------------------------------------------

    def files_of(self, task: TaskSpec) -> tuple[dict[str, str], tuple[int, int, int], list[int]]:
        """(environment, files 0 1 2, further files to inherit) of a task; ``started`` closes the child's ends."""
        rank = task.rank
        first = self._ranks and rank == min(self._ranks)
        stdin = self._files.stdin if first else self._null()
        out = self._own(open_output(task.stdout) if task.stdout else self._output.new(rank, OUT))
        err = out
        if task.stderr:
            err = self._own(open_output(task.stderr))
        elif self._spec.part.stderr is not None and not task.stdout:
            err = self._own(self._output.new(rank, ERR))
        if not self._pmi:
            return {}, (stdin, out, err), []
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._pmi_of[rank] = ours
        self._watch.add(ours.fileno(), lambda _: self._pmi_ready(rank))
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
        """A task was started, or could not be: close its ends of pipes and sockets."""
        self._tasks.append(task)
        self._to_start -= 1
        for fd in self._childs:
            os.close(fd)
        self._childs.clear()

    # -- end ---------------------------------------------------------------------------------------------------------

    def task_ended(self, task: Task) -> None:
        """A task has ended: read all that it wrote, then decide whether it ends the gang."""
        self._output.drain(task.rank)
        self._eof_at.pop(task.rank, None)
        if task.rank in self._pmi_of:
            while self._pmi_ready(task.rank):
                pass
        status = task.status or 0
        if self._led:
            return  # the master interprets this exit
        if self._quits:
            return
        if status:
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self._fail(FirstFailure(task.rank, status, f"rank {task.rank} {how} on {self._host}"))
        elif self._pmi and self._pmi.unfinished(task.rank):
            self._fail_unfinished(task.rank)

    def _fail_unfinished(self, rank: int) -> None:
        reason = f"rank {rank} on {self._host} ended without MPI_Finalize"
        self._fail(FirstFailure(rank, 1 << 8, reason))

    def _fail(self, first: FirstFailure, tell: bool = True) -> None:
        if self.failed:
            return
        self.failed = True
        self.first = first
        self._failed_at = time.monotonic()
        if self._net and (tell or self._root):
            self._net.fail(first)
        self.events.append(GangEvent.FAILED)

    def finish(self, first: FirstFailure | None, leave: bool) -> None:
        """The master has decided the end, on all hosts: end the tasks, or (``leave``) let them end."""
        if self.failed:
            return
        self.failed = True
        self.first = first
        if not leave:
            self._failed_at = time.monotonic()
            self.events.append(GangEvent.FAILED)

    def quit(self) -> None:
        """The job goes on without this host: its tasks may end as they like."""
        self._quits = True
        if self._net and not self.failed:
            self._net.fail(FirstFailure(-1, 9, f"{self._host} has left the job"))

    def leave(self, tell: bool) -> None:
        """This host's part is being killed: tell the other hosts not to wait for it, or (``tell`` False) break the link."""
        if not self.failed:
            self.failed = self._killed = True
            self._failed_at = time.monotonic()
            if self._network and not tell:
                self._network.close()
            elif self._net:
                self._net.fail(FirstFailure(-1, 9, f"the part on {self._host} was killed"))

    def over(self) -> bool:
        """True when nothing of the gang is left to wait for."""
        waits = (self._to_start or self._led) and not self.failed
        if waits or any(t.status is None for t in self._tasks):
            return False
        if not self._net:
            return True
        self._output.drain()
        if self._leaf:
            self._leaf.done(account.end_of_host(self._host, self._tasks, self.use))
        return self._net.over(self._failed_at)

    def completed(self, end: End) -> End:
        """The end of the part, with who failed first and, on the first host, what the other hosts told of their tasks."""
        return end._replace(first=self.first, others=tuple(self._root.others) if self._root else ())

    def status(self) -> int:
        """The wait status of the gang."""
        if self.first is not None:
            return self.first.status
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
        """Fail on a rank that closed its PMI connection and did not exit; give up hosts that are late."""
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
            self.events.append(GangEvent.OVER)

    # -- pmi ---------------------------------------------------------------------------------------------------------

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
                self._fail(FirstFailure(action.rank, status, reason))
            elif isinstance(action, Broken):
                self._fail(FirstFailure(action.rank, 1 << 8, action.text))

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
            self._fail(FirstFailure(action.rank, 1 << 8, f"rank {action.rank} does not read its PMI"))

    # -- output ------------------------------------------------------------------------------------------------------

    def _put(self, stream: int, lines: bytes) -> None:
        if self._leaf:
            self._leaf.out(stream, lines)
        else:
            self._write(stream, lines)

    def _write(self, stream: int, lines: bytes) -> None:
        takes = self._terminal is not None and self._terminal.is_for_user(stream)
        if self._terminal is not None and (takes or self._terminal.tees):
            self._terminal.put(stream, lines)
        if takes:
            return
        fd = self._files.stderr if stream == ERR else self._files.stdout
        if fd >= 0:
            write_all(fd, lines)

"""The ranks of a job on this host (a gang): their PMI service, their output, and what follows when one of them fails.

Rule: the first rank that aborts, dies inside MPI or ends with an error ends all ranks; its status is that of the part.
"""

from __future__ import annotations

import os
import time
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from agent.starter.mpi.pmi_job import Barrier
from agent.starter.mpi.pmi_sockets import PmiSockets
from agent.starter.mpi.rankio import ERR, OUT, RankOutput
from agent.starter.mpi.silent_ranks import OPEN_MPI, SilentRanks
from agent.starter.process import account
from agent.starter.process.account import Task
from agent.starter.process.prepare import Files
from agent.starter.process.spec import Spec
from agent.starter.protocol.part import NO_RANK, OutputFile, TaskSpec
from agent.starter.protocol.reports import End, FirstFailure, HostUse, Root
from agent.starter.system.stdio import is_discarded, open_output, write_all
from agent.starter.system.watch import Watch
from agent.starter.terminal.terminal import Terminal

if TYPE_CHECKING:  # ``ssl`` is loaded only where a job spans hosts
    from agent.starter.mpi.rank_network import LeafRankNetwork, RankNetworkEvent, RootRankNetwork
    from agent.starter.wire.job_network import JobNetwork

DONE_SECONDS = 10.0
"""Seconds that the other hosts have to end after a failure."""
GIVEN_UP = float("-inf")
"""As the time of a failure: the other hosts are not waited for any more."""


def is_gang(spec: Spec) -> bool:
    """Whether the part has ranks: their output goes through pipes, and the failure of one ends all."""
    part = spec.part
    ranks = part.link is not None and part.link.ranks
    return bool(part.led or part.pmi or ranks or part.label or len(spec.tasks) > 1)


class TaskFiles(NamedTuple):
    """What a task has of its own."""

    variables: dict[str, str]
    fds: tuple[int, int, int]
    """Its files 0, 1 and 2."""
    keep: list[int]
    """Further files to inherit."""


class GangEvent(Enum):
    """What happens to a gang; queued in ``Gang.events`` for the part."""

    READY = "ready"
    """The tasks may start."""
    FAILED = "failed"
    """A rank has failed: end the tasks that run."""
    OVER = "over"
    """Another host is done: check whether the gang is over."""


class Gang:
    """The ranks of one part."""

    def __init__(self, spec: Spec, host: str, files: Files, watch: Watch) -> None:
        self.events: list[GangEvent] = []
        """What has happened and the part has not handled yet."""
        self.first: FirstFailure | None = None
        self.failed = False
        self.use: HostUse | None = None
        """The agent's samples of what this host's ranks use, for the report of the first host."""
        self._failed_at: float | None = None
        self._killed = False
        self._leaving = False
        self._spec = spec
        self._host = host
        self._files = files
        self._watch = watch
        self._ranks = [t.rank for t in spec.tasks]
        self._first = min(self._ranks, default=NO_RANK)
        self._tasks: list[Task] = []
        self._to_start = len(self._ranks)
        self._led = spec.part.led
        labels = {t.rank: t.label or str(t.rank) for t in spec.tasks}
        self._output = RankOutput(watch, labels if spec.part.label else {}, self._put)
        self._child_fds: dict[int, list[int]] = {}
        self._stdin = -1
        self._network: JobNetwork | None = None
        self._root: RootRankNetwork | None = None
        """The network to the other hosts, on the first host."""
        self._leaf: LeafRankNetwork | None = None
        """The network to the first host, on every other host."""
        self._terminal: Terminal | None = None
        pmi = spec.part.pmi
        self._pmi = PmiSockets(pmi, host, self._ranks, watch, self._on_barrier, self._fail) if pmi else None
        self._size = pmi.size if pmi else 0
        # A job of one rank is right without PMI too.
        self._silent = SilentRanks(self._pmi.begun) if self._pmi and self._size > 1 else None

    def give_output_to(self, terminal: Terminal | None) -> None:
        """Send the ranks' output to the user of an interactive part."""
        self._terminal = terminal

    def pause_output(self, paused: bool) -> None:
        """Stop or resume reading the ranks' output: the user of an interactive part does not read it."""
        self._output.pause(paused)
        if self._root:
            self._root.pause(paused)

    @property
    def _net(self) -> RootRankNetwork | LeafRankNetwork | None:
        return self._root or self._leaf

    # -- hosts -------------------------------------------------------------------------------------------------------

    def join(self, network: JobNetwork) -> None:
        """Use this network to the ranks on other hosts."""
        from agent.starter.mpi import rank_network
        from agent.starter.wire.job_network import RootNetwork

        link = self._spec.part.link
        assert link is not None
        self._network = network
        if isinstance(network, RootNetwork):
            self._root = rank_network.RootRankNetwork(network, link.nodes, link.elastic, self._on_network_event)
        else:
            self._leaf = rank_network.LeafRankNetwork(network, self._on_network_event)

    def start(self, root: Root | None) -> None:
        """The part starts: the event READY follows when the hosts are connected. ``root``: the first host's address."""
        if self._net:
            self._net.start(root)
        else:
            self.events.append(GangEvent.READY)

    def _on_network_event(self, event: RankNetworkEvent) -> None:
        from agent.starter.mpi import rank_network as net

        match event:
            case net.Linked():
                self.events.append(GangEvent.READY)
            case net.PeerOver():
                self.events.append(GangEvent.OVER)
            case net.BarrierPassed(puts):
                if self._pmi:
                    self._pmi.release(puts)
            case net.Output(stream, lines):
                self._write(stream, lines)
            case net.Failed(first):
                self._fail(first)
            case net.EndedByRoot(first):
                self._fail(first, notify=False)
            case net.OutputRoom(free):
                self._output.pause(not free)

    # -- start -------------------------------------------------------------------------------------------------------

    def files_of(self, task: TaskSpec) -> TaskFiles:
        """What a task that is about to start gets; ``started`` closes the child's ends."""
        rank = task.rank
        self._child_fds[rank] = []
        stdin = self._files.stdin if rank == self._first else self._null()
        part = self._spec.part
        out = err = self._stream(rank, OUT, task.stdout, part.stdout)
        if task.stderr or (part.stderr is not None and not task.stdout):
            err = self._stream(rank, ERR, task.stderr, part.stderr)
        if not self._pmi:
            return TaskFiles({}, (stdin, out, err), [])
        env, fd = self._pmi.open(rank)
        self._child_fds[rank].append(fd)
        return TaskFiles(env, (stdin, out, err), [fd])

    def _stream(self, rank: int, stream: int, file: OutputFile | None, of_part: OutputFile | None) -> int:
        """Where a rank writes to: its own file, the part's where nobody sees that, else a pipe that is read here."""
        if file is None and is_discarded(of_part) and not self._net and not self._terminal:
            return self._files.stdout if stream == OUT else self._files.stderr
        fd = open_output(file) if file else self._output.new(rank, stream)
        self._child_fds[rank].append(fd)
        return fd

    def _close_ends(self, rank: int) -> None:
        for fd in self._child_fds.pop(rank, ()):
            os.close(fd)

    def _null(self) -> int:
        if self._stdin < 0:
            self._stdin = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        return self._stdin

    def started(self, task: Task) -> None:
        """A task was started, or could not be: close its ends of pipes and sockets here."""
        self._tasks.append(task)
        self._to_start -= 1
        if self._silent and task.pid:
            self._silent.started(task.rank, task.pid)
        self._close_ends(task.rank)

    # -- end ---------------------------------------------------------------------------------------------------------

    def task_ended(self, task: Task) -> None:
        """A task has ended: read all that it wrote, then decide whether it ends the others."""
        self._output.drain(task.rank)
        if self._pmi:
            self._pmi.task_ended(task.rank)
        if self._silent:
            self._silent.ended(task.rank)
        status = task.status or 0
        if self._led:
            return  # the master interprets this exit
        if self._leaving:
            return
        if status:
            code = os.waitstatus_to_exitcode(status)
            how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            self._fail(FirstFailure(task.rank, status, f"rank {task.rank} {how} on {self._host}"))
        elif self._pmi and (failure := self._pmi.find_unfinished(task.rank)):
            self._fail(failure)

    def _on_barrier(self, reached: Barrier) -> None:
        """All ranks of this host are in the barrier."""
        if self._net:
            self._net.barrier(reached)
        elif self._pmi:
            self._pmi.release(reached.puts)

    def _fail(self, first: FirstFailure, notify: bool = True) -> None:
        if self.failed:
            return
        self.failed = True
        self.first = first
        self._failed_at = time.monotonic()
        if self._net and (notify or self._root):
            self._net.fail(first)
        if self._pmi:
            self._pmi.fail(first.reason)
        self.events.append(GangEvent.FAILED)

    def finish(self, first: FirstFailure | None, leave: bool) -> None:
        """The master has decided that the job ends: end the tasks or, with ``leave``, let them end by themselves."""
        if self.failed:
            return
        self.failed = True
        self.first = first
        if not leave:
            self._failed_at = time.monotonic()
            self.events.append(GangEvent.FAILED)

    def leave_job(self) -> None:
        """The job continues without this host: how its tasks end does not matter any more."""
        self._leaving = True
        if self._net and not self.failed:
            self._net.fail(FirstFailure(-1, 9, f"{self._host} has left the job"))

    def part_killed(self, notify: bool) -> None:
        """The part here is being killed: tell the other hosts not to wait for it or, without ``notify``, just disconnect."""
        if not self.failed:
            self.failed = self._killed = True
            self._failed_at = time.monotonic()
            if self._network and not notify:
                self._network.close()
            elif self._net:
                self._net.fail(FirstFailure(-1, 9, f"the part on {self._host} was killed"))

    def over(self) -> bool:
        """Whether all tasks have ended, here and on the other hosts."""
        waits = (self._to_start or self._led) and not self.failed
        if waits or any(t.status is None for t in self._tasks):
            return False
        if not self._net:
            return True
        self._output.drain()
        if self._leaf:
            failed = self.first.status if self.first is not None and self.first.rank in self._ranks else 0
            self._leaf.done(account.end_of_host(self._host, self._tasks, self.use, self._is_silent(), failed))
        return self._net.over(self._failed_at)

    def completed(self, end: End) -> End:
        """The end of the part with the first failure and, on the first host, what the tasks of the other hosts used."""
        others = tuple(self._root.others) if self._root else ()
        silent = not end.status and not self._leaf and self._is_silent() and all(host.silent for host in others)
        note = f"none of the {self._size} ranks joined the MPI job: each ran for itself" if silent else ""
        return end._replace(first=self.first, others=others, note=note)

    def _is_silent(self) -> bool:
        """Whether the job has several ranks, and none of those here has begun PMI."""
        return self._silent is not None and self._pmi is not None and not any(map(self._pmi.begun, self._ranks))

    def status(self) -> int:
        """The wait status of the part: that of the first rank that failed, 0 if none did."""
        if self.first is not None:
            return self.first.status
        if self._killed:
            return next((t.status for t in self._tasks if t.status), 9)
        return 0

    def flush(self) -> None:
        """Write what is left in the ranks' pipes."""
        self._output.drain()

    def close(self) -> None:
        """Close all files and connections."""
        for rank in list(self._child_fds):
            self._close_ends(rank)
        self._output.close()
        if self._pmi:
            self._pmi.close()
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1

    # -- time --------------------------------------------------------------------------------------------------------

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        times: list[float] = []
        if self._pmi and (at := self._pmi.wake_at()) is not None:
            times.append(at)
        if self._silent and not self.failed and (at := self._silent.wake_at()) is not None:
            times.append(at)
        if self._net:
            if self._failed_at is not None and self._failed_at != GIVEN_UP:
                times.append(self._failed_at + DONE_SECONDS)
            if (at := self._net.wake_at()) is not None:
                times.append(at)
        return min(times, default=None)

    def on_time(self) -> None:
        """Fail on a rank that closed its PMI and did not end, or has another MPI library; give up hosts that are late."""
        now = time.monotonic()
        if self._pmi:
            self._pmi.on_time()
        if self._silent and not self.failed and (rank := self._silent.find()) is not None:
            self._fail(FirstFailure(rank, 1 << 8, OPEN_MPI))
        if not self._net:
            return
        self._net.on_time()
        if self._failed_at is not None and self._failed_at != GIVEN_UP and now >= self._failed_at + DONE_SECONDS:
            self._failed_at = GIVEN_UP
            self.events.append(GangEvent.OVER)

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

"""One task that ``blaunch`` started on this host: its process and its three pipes, with flow control.

Rule: a pipe is read only while the client has granted credit; all output is sent before the exit code.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping

from agent.starter.process import tasks
from agent.starter.process.spec import Spec, encode_env
from agent.starter.protocol.commands import Shell, TaskRequest
from agent.starter.system import kernel, proctree
from agent.starter.system.binding import bound
from agent.starter.system.rlimits import Limits
from agent.starter.system.watch import Watch
from agent.starter.terminal.flow import Flow, SendFrame
from agent.starter.wire import taskwire as wire

EXIT_TO_EOF = 0.5
"""Seconds after the task's end for which output of processes that it left behind is still read."""
TERM_TO_KILL = 2.0
SHELL = "/bin/sh"

_OF_A_HOST = (
    "HOSTNAME HOSTTYPE LAVA_SOCKET LAVA_HOST LAVA_TASKS LAVA_TOKEN LAVA_ATTEMPT CUDA_DEVICE_ORDER NVIDIA_VISIBLE_DEVICES"
    " CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY LSB_JOBFILENAME LSB_CHKFILENAME XLSF_UIDDIR LSB_BIND_CPU_LIST"
    " LSB_AFFINITY_HOSTFILE LAVA_TIME_LEFT_FILE LSB_CHKPNT_DIR LAVA_CKPT_DIR LAVA_CKPT_PART"
)
OF_THIS_HOST = frozenset(_OF_A_HOST.split())
"""Variables that are set by the part on this host and not taken from the caller."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
"""LSF's for single tasks begin with it too; all are of the host."""
_NOT_PASSED_ON = (_VISIBLE, "PMI_", "PMIX_", "OMPI_COMM_", "OMPI_APP_", "OMPI_MCA_ess", "OMPI_MCA_orte_ess", "PRTE_MCA_ess")
_OF_A_RANK = frozenset(("MPI_LOCALRANKID", "MPI_LOCALNRANKS", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_local_daemon_uri"))


def environment(spec: Spec, asked: TaskRequest) -> dict[str, bytes]:
    """The part's variables, overridden by the caller's, without those that make a process a rank of the caller's own launch."""
    passed = {
        name: value
        for name, value in asked.env.items()
        if name not in OF_THIS_HOST and name not in _OF_A_RANK and not name.startswith(_NOT_PASSED_ON)
    }
    return {**spec.env, **encode_env({**passed, **_gpus(spec, asked), "LSF_PM_TASKID": asked.task})}


def _gpus(spec: Spec, asked: TaskRequest) -> dict[str, str]:
    """A task has its own GPUs where its command starts one for every slot of the host; one task a host is a launcher's."""
    own = spec.part.serve.gpus if spec.part.serve else ()
    if not own or asked.of != len(own) or not 0 <= asked.nth < len(own):
        return {}
    found = {_VISIBLE: own[asked.nth], "NVIDIA_VISIBLE_DEVICES": own[asked.nth]}
    if _VISIBLE not in spec.env:
        del found[_VISIBLE]
    first = own[asked.nth].partition(",")[0]
    return found | next((daemon.variables for daemon in spec.part.mps if first in daemon.gpus.split(",")), {})


def program(asked: TaskRequest, env: Mapping[str, bytes]) -> list[str]:
    """The argument vector: the words themselves or, for a shell, the words joined by blanks as rsh does."""
    if asked.shell is Shell.NONE:
        return list(asked.words)
    line = " ".join(asked.words)
    if asked.shell is Shell.LOGIN:
        shell = os.fsdecode(env.get("SHELL", b"")[6:]) or SHELL
        return [shell, "-l", "-c", line]
    return [SHELL, "-c", line]


class TaskRun:
    """A task. ``send`` sends a frame to the client; ``over``: the last frame was sent."""

    def __init__(self, watch: Watch, send: SendFrame) -> None:
        self.pid = 0
        self.over = False
        self._flow = Flow(watch, send, self._finish_if_drained)
        self._code: int | None = None
        self._due: float | None = None
        self._groups: set[int] = set()

    def start(self, spec: Spec, asked: TaskRequest, limits: Limits) -> None:
        """Start the task. If that fails, its standard error and exit code are what a shell would give."""
        env = environment(spec, asked)
        argv = program(asked, env)
        self._enter_folder(asked, spec)
        theirs: list[int] = []
        try:
            fds = self._pipes(asked.stdin, theirs)
            path = os.fsdecode(env["PATH"][5:]) if "PATH" in env else None
            programs = tasks.candidates(argv[0], path)
            with bound(spec.part.bind) as warning:
                self.pid = tasks.start(argv, programs, list(env.values()), fds, (), limits, spec.part.nice)
            if warning:
                self._flow.send(wire.DATA, wire.data(wire.ERR, warning))
        except (OSError, ValueError) as e:
            code, line = tasks.as_a_shell_says(argv[0], e)
            self._flow.send(wire.DATA, wire.data(wire.ERR, line))
            self._code = code
        finally:
            os.chdir("/")
            for fd in theirs:
                os.close(fd)
        if self.pid:
            self._flow.send(wire.STARTED, b"%d" % self.pid)
            self._flow.grant_input()
        else:
            self._finish()

    def _enter_folder(self, asked: TaskRequest, spec: Spec) -> None:
        for folder in (asked.cwd, spec.part.cwd, *spec.part.cwd_else, "/tmp"):
            try:
                os.chdir(folder or "/")
                return
            except (OSError, ValueError):
                continue

    def _pipes(self, with_input: bool, theirs: list[int]) -> tuple[int, int, int]:
        if with_input:
            read_end, ours = os.pipe2(os.O_CLOEXEC)
            self._flow.set_input(ours)
        else:
            read_end = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
        theirs.append(read_end)
        for stream in (wire.OUT, wire.ERR):
            ours, write_end = os.pipe2(os.O_CLOEXEC)
            theirs.append(write_end)
            self._flow.add_output(ours, stream)
        return theirs[0], theirs[1], theirs[2]

    # -- from the client -----------------------------------------------------------------------------------------------

    def on_frame(self, frame: wire.Frame) -> None:
        """A frame from the client."""
        if frame.kind in (wire.DATA, wire.CREDIT):
            self._flow.on_frame(frame)
        elif frame.kind == wire.SIGNAL and frame.body and 0 < frame.body[0] <= 64:
            self.signal(frame.body[0])
        elif frame.kind == wire.ABANDON:
            self.abandon()

    def signal(self, sig: int) -> None:
        """Signal every process group of the task."""
        if self.pid and self._code is None:
            proctree.signal_groups({self.pid, *proctree.below([self.pid])}, sig)

    def abandon(self) -> None:
        """The client is gone: SIGTERM a running task, and SIGKILL it TERM_TO_KILL seconds later."""
        self._flow.send = _discard
        self._flow.close_input()
        if self._code is not None or not self.pid:
            self._finish()
            return
        self._flow.lift_limits()
        self._groups = {self.pid, *proctree.below([self.pid])}
        proctree.signal_groups(self._groups, signal.SIGTERM)
        self._due = time.monotonic() + TERM_TO_KILL

    # -- end -----------------------------------------------------------------------------------------------------------

    def ended(self, seen: kernel.Ended) -> None:
        """The task's process has ended: send the rest of its output, then its exit code."""
        code = os.waitstatus_to_exitcode(seen[1])
        self._code = 128 - code if code < 0 else code
        self._due = time.monotonic() + EXIT_TO_EOF
        self._flow.close_input()
        self._flow.drain()
        self._finish_if_drained()

    def _finish_if_drained(self) -> None:
        """The task is over when its process has ended and both pipes are closed."""
        if self._code is not None and not self.over and self._flow.is_drained:
            self._finish()

    def _finish(self) -> None:
        if self.over:
            return
        self.over = True
        self._due = None
        self._flow.close()
        self._flow.send(wire.EXIT, wire.exit_body(0 if self._code is None else self._code))

    def wake_at(self) -> float | None:
        """When ``on_time`` has something to do (monotonic)."""
        return self._due

    def on_time(self, now: float) -> None:
        """Kill an abandoned task that did not end; stop waiting for pipes that processes left behind hold open."""
        if self._due is None or now < self._due:
            return
        self._due = None
        if self._code is None:
            proctree.signal_groups({*self._groups, self.pid, *proctree.below([self.pid])}, signal.SIGKILL)
        elif self._flow.is_waiting:
            # The pipe still has output of the task, for which the client has granted no credit yet.
            self._due = now + EXIT_TO_EOF
        else:
            self._finish()

    def close(self) -> None:
        """The part is over: end without a frame."""
        self._flow.send = _discard
        self._finish()


def _discard(_: int, __: bytes) -> None:
    pass

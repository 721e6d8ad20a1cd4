"""One part in its shepherd, from preparing to gone: the order of its steps, and its timers.

Rule: every step may be overtaken by a kill or by the lease; then what is left is to end what runs, and to tell.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from agent.starter.mpi.gang import Gang
from agent.starter.part.begin import as_refused, begin, begin_setup, why_setup_failed
from agent.starter.part.ending import Ending
from agent.starter.part.part_resources import Outfit
from agent.starter.part.role_tasks import Led
from agent.starter.process import account, prepare
from agent.starter.process.account import Task
from agent.starter.process.phase import Phase, why_no_task
from agent.starter.process.signals import Signals
from agent.starter.process.spec import Spec
from agent.starter.system import kernel
from agent.starter.system.lease import LOOK_AGAIN, Lease
from agent.starter.system.stdio import Refused
from agent.starter.system.watch import Watch
from agent.starter.terminal.terminal import Terminal
from agent.starter.wire import frames

STARTED_AFTER = 0.010
TERM_TO_KILL = 1.0

# A report of the part, as an object or as JSON.
Tell = Callable[[dict[str, Any] | bytes], None]


class PartRun:
    """A part on this host. ``tell`` sends a report of it to the starter; ``watch`` calls back when files are ready."""

    def __init__(self, spec: Spec, end_fd: int, host: str, watch: Watch, tell: Tell) -> None:
        self.spec = spec
        self.uid = spec.uid
        self.phase = Phase.PREPARING
        self.killing = self.silent = False
        self._end_fd = end_fd
        self._tell = tell
        self._lease = Lease(spec.get("deadline"))
        self._expired = self._posts = False
        self._posts_always = bool(spec.get("post_always"))
        self._tasks: list[Task] = []
        self._by_pid: dict[int, Task] = {}
        self._setup_pid = self._post = 0
        self._outfit = Outfit(spec, host, watch, self._gang_says, self._user_does, self._why_no_task)
        self._led = Led(spec, tell) if spec.get("led") else None
        self._started = 0.0
        self._timers: dict[str, float] = {}
        self.signals = Signals(self._by_pid, self._timers, lambda sig: tell({"uid": self.uid, "is": "deaf", "sig": sig}))
        self._ending = Ending(self._timers, lambda: self._tell({"uid": self.uid, "is": "stuck"}))
        self._ended_report: bytes | None = None

    @property
    def terminal(self) -> Terminal | None:
        """Its user's, if it is interactive; it may outlive the part."""
        return self._outfit.terminal

    @property
    def _gang(self) -> Gang | None:
        return self._outfit.gang

    def _user_does(self, what: str, sig: int) -> None:
        """Only an interactive part has a user."""

    def _why_no_task(self) -> str:
        return why_no_task(self.phase, self.killing, self.spec.get("title", self.uid))

    # -- orders ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Prepare; then run, or wait for the word to go."""
        self._or_refuse(self._begin)

    def _begin(self) -> None:
        self._prepare()
        if command := self.spec.get("pre_exec"):
            self._setup_pid = begin_setup(self.spec, command, {})
        else:
            self._ready()

    def _or_refuse(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (Refused, OSError, LookupError, TypeError, ValueError, AttributeError) as e:
            self._refuse(as_refused(e, self.spec))

    def go(self, root: list[Any] | None) -> None:
        """The second phase of a two-phase part."""
        if self.phase is Phase.PREPARED and not self.killing:
            self._or_refuse(lambda: self._go(root))

    def start_task(self, rank: int, number: int, delay: float) -> None:
        """Start a task of a led part, late or again."""
        if self._led and self.phase is Phase.RUNNING and not self.killing:
            self._led.ask(rank, number, delay)
            self._start_due()

    def finish(self, first: dict[str, Any] | None, leave: bool) -> None:
        """The tasks of a led part have decided its end: end what runs, or (``leave``) wait for it."""
        if self._led and self._gang and not self._led.finishing and not self.killing:
            self._led.finish()
            self._gang.finish(first, leave)
            self._end_when_over()
            self.look()

    def told(self, order: dict[str, Any]) -> None:
        """News of the job's hosts."""
        self._outfit.told(order)

    def renew(self, deadline: float) -> None:
        """Move the lease deadline."""
        self._lease.renew(deadline)

    def kill(self, posts: bool = False) -> None:
        """SIGKILL everything, again and again until nothing is left. ``posts``: post-execution follows as after any end."""
        if self.phase is Phase.GONE or (self.phase is Phase.POST and self._posts_always):
            return
        self.killing = True
        self._posts = posts
        self._timers.pop("kill", None)
        if self._gang:
            self._gang.leave(tell=not self.silent)
        self._ending.sweep()
        self.look()

    # -- time --------------------------------------------------------------------------------------------------------

    def wait_for(self) -> float | None:
        """Seconds until ``on_time`` has something to do."""
        times = list(self._timers.values())
        times += [at for one in (self._outfit, self._led) if one and (at := one.wake_at()) is not None]
        due = min(times) - time.monotonic() if times else None
        left = None if self._expired or self.phase is Phase.GONE else self._lease.left()
        if left is not None:
            left = min(left, LOOK_AGAIN)
            due = left if due is None else min(due, left)
        return None if due is None else max(0.0, due)

    def on_time(self) -> None:
        """Do what is due."""
        left = self._lease.left()
        if left is not None and left <= 0 and not self._expired and self.phase is not Phase.GONE:
            self._expired, self._posts_always = True, False
            self.kill()
        self._outfit.on_time()
        self._start_due()
        if not self._timers:
            return
        now = time.monotonic()
        due = [name for name, at in self._timers.items() if at <= now]
        for name in due:
            self._timers.pop(name, None)
            if name == "started":
                self._report_started()
            elif name == "ask":
                self.signals.ask_again()
            elif name == "sweep":
                self._ending.sweep()
            elif name == "kill" and self._gang and self.phase is Phase.RUNNING:
                # Only the tasks: the end is still to come from the other hosts, with their last lines.
                self._ending.sweep()
            elif name == "kill":
                self.kill()
        if due:
            self.look()

    # -- children ----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Take every child that has ended; end the part when it was the last."""
        while True:
            seen = kernel.look_at_ended_child()
            pid = seen[0]
            if pid == 0:
                break
            if pid < 0:
                self._no_child()
                return
            task = self._by_pid.pop(pid, None)
            if task is not None:
                task.ended(seen)
                self._task_over(task)
                self._end_when_over()
            else:
                self._outfit.ended(seen)
            os.waitpid(pid, 0)
            if pid == self._setup_pid:
                self._setup_ended(seen[1])
        if self._ended_report is not None:
            self._tell_end(gone=False)
            self._clear()
        elif self.phase is Phase.POST and not self._setup_pid:
            self._clear()

    def _no_child(self) -> None:
        if self.killing and self.phase in (Phase.PREPARING, Phase.PREPARED, Phase.RUNNING):
            self._end_when_over(force=True)
        if self.phase is Phase.ENDED:
            posts = self.spec.get("post_exec") and self._started and not self.silent
            if posts and (not self.killing or self._posts or self._posts_always):
                if self._ended_report is not None:
                    self._tell_end(gone=False)
                self._start_post()
            else:
                self._gone()
        elif self.phase is Phase.POST:
            self._gone()

    def _clear(self) -> None:
        """The tasks have ended and something of the part is left: ask it to end, then end it."""
        if self.killing:
            self._ending.sweep()
        elif "kill" not in self._timers:
            self._ending.ask(self.spec.get("grace", 2.0))

    # -- before ------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        left = self._lease.left()
        if left is not None and left <= 0:
            raise Refused("stale", f"the lease of {self.spec.get('title', self.uid)} had passed before it started")
        self._outfit.make()

    def _ready(self) -> None:
        if not self.spec.get("two_phase"):
            self._go(None)
            return
        self.phase = Phase.PREPARED
        door = {"door": self.terminal.address()} if self.terminal else {}
        self._tell({"uid": self.uid, "is": "prepared", "addr": self._outfit.address(), **door})

    def _refuse(self, e: Refused) -> None:
        self._tell({"uid": self.uid, "is": "refused", "code": e.code, "reason": e.reason})
        self.phase = Phase.ENDED
        self.kill()

    def _setup_ended(self, status: int) -> None:
        self._setup_pid = 0
        self._post = status if self.phase is Phase.POST else 0
        if self.phase is not Phase.PREPARING or self.killing:
            return
        if status:
            self._refuse(why_setup_failed(self.spec, status))
        else:
            self._or_refuse(self._ready)

    def _start_post(self) -> None:
        self.phase, self.killing = Phase.POST, False
        self._timers.pop("sweep", None)
        more = {"LSB_JOBEXIT_STAT": str(self._final_status())}
        try:
            prepare.enter_folder(self.spec)
            self._setup_pid = begin_setup(self.spec, self.spec.get("post_exec"), more)
        except Refused:
            self._gone()
        os.chdir("/")

    # -- run ---------------------------------------------------------------------------------------------------------

    def _go(self, root: list[Any] | None) -> None:
        self.phase = Phase.RUNNING
        self._outfit.go(root)
        if not self._gang:
            self._start_tasks()

    def _start_tasks(self) -> None:
        if not self._outfit.may_start():
            return
        self._started = time.time()
        self._outfit.starts()
        for spec in self._led.first() if self._led else self.spec.tasks:
            self._start_task(spec)
            if self._gang and self._gang.failed:
                break
        self._outfit.started()
        os.chdir("/")
        self._timers["started"] = time.monotonic() + STARTED_AFTER
        if self._tasks:
            self._end_when_over()
            if self._ended_report is not None:
                self.look()

    def _start_due(self) -> None:
        """Start the tasks that were ordered and whose time has come."""
        if not self._led or self.phase is not Phase.RUNNING or self.killing:
            return
        for of in self._led.due():
            self._start_task({**of, "cwd": of.get("cwd") or self._outfit.cwd})
            self._led.started(self._tasks[-1])
            os.chdir("/")

    def _start_task(self, of: dict[str, Any]) -> None:
        task = Task(int(of.get("rank", -1)), 0)
        self._tasks.append(task)
        begin(task, of, self.spec, self._outfit.fds, self._gang, self._outfit.limits, self._outfit.tty)
        if task.pid:
            self._by_pid[task.pid] = task
        if self._gang:
            self._gang.started(task)
            if task.status is not None:
                self._task_over(task)

    def _task_over(self, task: Task) -> None:
        if self._gang:
            self._gang.task_ended(task)
        if self._led:
            self._led.ended(task)

    def _report_started(self) -> None:
        if self.phase is Phase.RUNNING:
            self._tell({"uid": self.uid, "is": "started", **account.start_record(self._tasks, self._started)})

    # -- end ---------------------------------------------------------------------------------------------------------

    def _final_status(self) -> int:
        if self._gang:
            return self._gang.status()
        status = self._tasks[0].status if self._tasks else None
        return int(signal.SIGKILL) if status is None else status

    def _end_when_over(self, force: bool = False) -> None:
        """END goes to disk when no task runs any more, before the last one is reaped."""
        if self._by_pid or self.phase in (Phase.ENDED, Phase.POST, Phase.GONE):
            return
        if not force and not self.killing and (self.phase is not Phase.RUNNING or not (self._tasks or self._gang)):
            return
        if self._gang and not force and not self.killing and not self._gang.over():
            return
        self.phase = Phase.ENDED
        end = self._outfit.end(self._tasks, self._final_status(), self._started, self._expired)
        # Encoded once, for disk and report alike.
        self._ended_report = frames.text({"uid": self.uid, "is": "ended", "end": end})
        if not self.silent:
            account.write_end(self._end_fd, self._ended_report)

    def _tell_end(self, gone: bool) -> None:
        report, self._ended_report = self._ended_report, None
        assert report is not None
        self._tell(report[:-1] + b',"gone":true}' if gone else report)

    def _gone(self) -> None:
        if self._ended_report is not None:
            self._tell_end(gone=True)
        else:
            self._tell({"uid": self.uid, "is": "gone", "post": self._post})
        self._close()

    def _close(self) -> None:
        self.phase = Phase.GONE
        self._timers.clear()
        self._outfit.close(self._started, bool(self._started and (self.killing or self._final_status())))
        if not self._started:
            os.chdir("/")

    # -- gang --------------------------------------------------------------------------------------------------------

    def _gang_says(self, what: str) -> None:
        """``ready``: its tasks may start; ``failed``: end them; ``over``: nothing more to wait for."""
        if what == "ready" and not (self._led and self._led.finishing):
            if not self.killing and self.phase is Phase.RUNNING:
                self._start_tasks()
        elif what == "failed":
            if self._led:
                self._led.fail()
            if not self.killing and self.phase in (Phase.RUNNING, Phase.PREPARED):
                self._ending.ask(TERM_TO_KILL)
        else:
            self._end_when_over()
            if self._ended_report is not None:
                self.look()

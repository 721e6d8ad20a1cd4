"""One part in its shepherd, from preparing to gone: the order of its steps, and its timers.

Rule: a kill or the end of the lease may come between any two steps; then what runs is ended, and the end is reported.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from agent.starter.mpi.gang import Gang, GangEvent
from agent.starter.part import task_start
from agent.starter.part.ending import Ending, Lease
from agent.starter.part.native_parts import TakenTask
from agent.starter.part.part_resources import PartResources
from agent.starter.part.part_tasks import PartTasks
from agent.starter.process import prepare
from agent.starter.process.ends import EncodedEnd, encode_end
from agent.starter.process.progress import Phase, Progress, Timer, Timers
from agent.starter.process.spec import Spec
from agent.starter.protocol import reports
from agent.starter.protocol.orders import Scope
from agent.starter.protocol.reports import EncodedReport, FirstFailure, FromShepherd, Root
from agent.starter.system import kernel
from agent.starter.system.stdio import Refused
from agent.starter.system.watch import Watch
from agent.starter.terminal.terminal import Attached, Left, OutputPaused, Signalled, Terminal, UserEvent

STARTED_AFTER = 0.010
TERM_TO_KILL = 1.0


class PartRun:
    """A part on this host. Its reports are queued in ``reports``, for the shepherd to send."""

    def __init__(self, spec: Spec, end_fd: int, host: str, watch: Watch) -> None:
        self.spec = spec
        self.uid = spec.uid
        self.silent = False
        """The starter is gone: a kill leaves no end."""
        self.reports: list[FromShepherd | EncodedReport] = []
        self._end_fd = end_fd
        self._progress = Progress(spec.title)
        self._lease = Lease(spec.part.deadline, watch)
        self._expired = self._posts = False
        self._posts_always = spec.part.post_always
        self._setup_pid = self._post = 0
        self._said = task_start.Said()
        self._timers: Timers = {}
        self.resources = PartResources(spec, host, watch, self._progress)
        self._tasks = PartTasks(spec, self.resources, self._timers)
        self._ending = Ending(self._timers)
        self._ended: EncodedEnd | None = None
        """Its end, in the end file and not reported yet."""

    @property
    def phase(self) -> Phase:
        """Its present phase."""
        return self._progress.phase

    @property
    def killing(self) -> bool:
        """Whether everything is being killed."""
        return self._progress.killing

    @property
    def terminal(self) -> Terminal | None:
        """The terminal of an interactive part; it may outlive the part."""
        return self.resources.terminal

    @property
    def _gang(self) -> Gang | None:
        return self.resources.gang

    def _tell(self, report: FromShepherd | None) -> None:
        if report is not None:
            self.reports.append(report)

    # -- orders ------------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Prepare; then run, or wait for ``Go``."""
        self._or_refuse(self._begin)

    def _begin(self) -> None:
        left = self._lease.left()
        if left is not None and left <= 0:
            raise Refused("stale", f"the lease of {self.spec.title} had passed before it started")
        self.resources.make()
        if command := self.spec.part.pre_exec:
            self._setup_pid = task_start.begin_setup(self.spec, command, {}, self._said.open())
        else:
            self._ready()

    def take_over(self, task: TakenTask) -> None:
        """Go on with the task that native code has started; it may have ended since."""
        self.resources.take_over()
        self._tasks.take_over(task)
        self._lease.renew(task.deadline)
        self._progress.phase = Phase.ENDED if task.end else Phase.RUNNING
        self._ended = EncodedEnd(task.end) if task.end and not task.end_told else None
        if not task.told:
            self._timers[Timer.STARTED] = time.monotonic() + STARTED_AFTER
        (self.kill if task.killing else self.look)()

    def _or_refuse(self, step: Callable[[], None]) -> None:
        try:
            step()
        except (Refused, OSError, LookupError, TypeError, ValueError, AttributeError) as e:
            self._refuse(task_start.as_refused(e, self.spec))

    def go(self, root: Root | None) -> None:
        """All hosts of the job are prepared: run."""
        if self.phase is Phase.PREPARED and not self.killing:
            self._or_refuse(lambda: self._go(root))

    def start_task(self, rank: int, number: int, delay: float) -> None:
        """Start a task of a role job, late or again."""
        if self._tasks.role and self.phase is Phase.RUNNING and not self.killing:
            self._tasks.role.ask(rank, number, delay)
            self._start_due()

    def finish(self, first: FirstFailure | None, leave: bool) -> None:
        """The master has decided that a role job ends: end what runs, or (``leave``) wait for it."""
        if self._tasks.role and self._gang and not self._tasks.role.finishing and not self.killing:
            self._tasks.role.finish()
            self._gang.finish(first, leave)
            self.take_events()
            self._end_when_over()
            self.look()

    def signal(self, sig: int, scope: Scope, within: float = 0.0) -> None:
        """Send a signal. With ``Scope.CATCHING``, report it when no task catches it within so many seconds."""
        if scope is Scope.CATCHING:
            self._tell_ignored(self._tasks.signals.ask(sig, within))
        else:
            self._tasks.signals.send(sig, scope is Scope.TASKS)

    def _tell_ignored(self, sig: int | None) -> None:
        if sig is not None:
            self._tell(reports.SignalIgnored(self.uid, sig))

    def end_task(self, rank: int, number: int, asked: bool) -> None:
        """End one task and all its descendants, as of the order."""
        self._tasks.end_task(rank, number, asked)

    def renew(self, deadline: float) -> None:
        """Move the lease deadline."""
        self._lease.renew(deadline)

    def kill(self, posts: bool = False) -> None:
        """SIGKILL everything, again and again until nothing is left. ``posts``: post-execution follows as after any end."""
        if self.phase is Phase.GONE or (self.phase is Phase.POST and self._posts_always):
            return
        self._progress.killing = True
        self._posts = posts
        self._timers.pop(Timer.KILL, None)
        if self._gang:
            self._gang.part_killed(notify=not self.silent)
        self._sweep()
        self.look()

    def _sweep(self) -> None:
        if not self._ending.sweep():
            self._tell(reports.Stuck(self.uid))

    # -- time --------------------------------------------------------------------------------------------------------

    def wait_for(self) -> float | None:
        """Seconds until ``on_time`` has something to do."""
        times = list(self._timers.values())
        times += [] if (at := self._tasks.wake_at()) is None else [at]
        left = None if self._expired or self.phase is Phase.GONE else self._lease.look_in()
        due = [at - time.monotonic() for at in times] + ([] if left is None else [left])
        return max(0.0, min(due)) if due else None

    def on_time(self) -> None:
        """Do what is due."""
        left = self._lease.left()
        if left is not None and left <= 0 and not self._expired and self.phase is not Phase.GONE:
            self._expired, self._posts_always = True, False
            self.kill()
        self._tasks.on_time()
        self.take_events()
        self._start_due()
        if not self._timers:
            return
        now = time.monotonic()
        due = [timer for timer, at in self._timers.items() if at <= now]
        for timer in due:
            self._timers.pop(timer, None)
            self._on_timer(timer)
        if due:
            self.look()

    def _on_timer(self, timer: Timer) -> None:
        if timer is Timer.STARTED:
            self._report_started()
        elif timer is Timer.ASK:
            self._tell_ignored(self._tasks.signals.ask_again())
        elif timer is Timer.SWEEP or (self._gang and self.phase is Phase.RUNNING):
            # A gang: only its tasks are killed, as the other hosts still have to report their end and output.
            self._sweep()
        else:
            self.kill()

    # -- children ----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Handle every child that has ended; after the last one, the part ends."""
        while True:
            seen = kernel.look_at_ended_child()
            pid = seen[0]
            if pid == 0:
                break
            if pid < 0:
                self._no_child()
                return
            if self._tasks.ended(seen):
                self.take_events()
                self._end_when_over()
            else:
                self.resources.ended(seen)
            os.waitpid(pid, 0)
            if pid == self._setup_pid:
                self._setup_ended(seen[1])
        if self._ended is not None:
            self._tell_end(gone=False)
            self._clear()
        elif not self._setup_pid and (self.phase is Phase.POST or (self.phase is Phase.ENDED and not self.killing)):
            self._clear()

    def _no_child(self) -> None:
        if self.killing and self.phase in (Phase.PREPARING, Phase.PREPARED, Phase.RUNNING):
            self._end_when_over(force=True)
        if self.phase is Phase.ENDED:
            posts = self.spec.part.post_exec and self._tasks.began and not self.silent
            if posts and (not self.killing or self._posts or self._posts_always):
                if self._ended is not None:
                    self._tell_end(gone=False)
                self._start_post()
            else:
                self._gone()
        elif self.phase is Phase.POST:
            self._gone()

    def _clear(self) -> None:
        """The tasks have ended and left processes behind: SIGTERM, then SIGKILL."""
        if self.killing:
            self._sweep()
        elif Timer.KILL not in self._timers:
            self._ending.ask(self.spec.part.grace)

    # -- before ------------------------------------------------------------------------------------------------------

    def _ready(self) -> None:
        if not self.spec.part.two_phase:
            self._go(None)
            return
        self._progress.phase = Phase.PREPARED
        attach_address = self.terminal.address() if self.terminal else ""
        self._tell(reports.Prepared(self.uid, self.resources.address(), attach_address))

    def _refuse(self, e: Refused) -> None:
        self._tell(reports.Refused(self.uid, e.code, e.reason))
        self._progress.phase = Phase.ENDED
        self.kill()

    def _setup_ended(self, status: int) -> None:
        self._setup_pid = 0
        said = self._said.take()
        self._post = status if self.phase is Phase.POST else 0
        if self.phase is not Phase.PREPARING or self.killing:
            return
        if status:
            self._refuse(task_start.why_setup_failed(self.spec, status, said))
        else:
            self._or_refuse(self._ready)

    def _start_post(self) -> None:
        more = {"LSB_JOBEXIT_STAT": str(self._tasks.status())} | task_start.only_hosts(self.killing and not self._posts)
        self._progress.phase, self._progress.killing = Phase.POST, False
        self._timers.pop(Timer.SWEEP, None)
        try:
            prepare.enter_folder(self.spec)
            with task_start.behind_output(self.spec) as say:
                self._setup_pid = task_start.begin_setup(self.spec, self.spec.part.post_exec or "", more, say)
        except Refused:
            self._gone()
        os.chdir("/")

    # -- run ---------------------------------------------------------------------------------------------------------

    def _go(self, root: Root | None) -> None:
        self._progress.phase = Phase.RUNNING
        self.resources.go(root)
        self.take_events()
        if not self._gang:
            self._start_tasks()

    def _start_tasks(self) -> None:
        if not self.resources.may_start():
            return
        self._tasks.start()
        self._timers[Timer.STARTED] = time.monotonic() + STARTED_AFTER
        self.take_events()
        if not self._tasks.none_yet:
            self._end_when_over()
            if self._ended is not None:
                self.look()

    def _start_due(self) -> None:
        """Start the tasks that were ordered and whose time has come."""
        if not self._tasks.role or self.phase is not Phase.RUNNING or self.killing:
            return
        self._tasks.start_due()
        self.take_events()

    def _report_started(self) -> None:
        if self.phase is Phase.RUNNING:
            self._tell(self._tasks.started_report())

    # -- end ---------------------------------------------------------------------------------------------------------

    def _end_when_over(self, force: bool = False) -> None:
        """When no task runs any more: write the end to its file, before the last task is reaped."""
        if self._tasks.running or self.phase in (Phase.ENDED, Phase.POST, Phase.GONE):
            return
        if not force and not self.killing and (self.phase is not Phase.RUNNING or (self._tasks.none_yet and not self._gang)):
            return
        if self._gang and not force and not self.killing and not self._gang.over():
            return
        self._progress.phase = Phase.ENDED
        self._ended = encode_end(self.uid, self._tasks.end(self._expired, self.silent))
        if not self.silent:
            self._ended.write(self._end_fd)

    def _tell_end(self, gone: bool) -> None:
        if self._ended is not None:
            self.reports.append(self._ended.report(gone))
        self._ended = None

    def _gone(self) -> None:
        if self._ended is not None:
            self._tell_end(gone=True)
        else:
            self._tell(reports.Gone(self.uid, self._post))
        self._progress.phase = Phase.GONE
        self._timers.clear()
        self._lease.close()
        self.resources.close(self._tasks.began, bool(self._tasks.began and (self.killing or self._tasks.status())))
        if not self._tasks.began:
            os.chdir("/")

    # -- events of the gang and of the terminal ----------------------------------------------------------------------

    def take_events(self) -> None:
        """Act on the events of gang and terminal, and report single tasks."""
        gang, terminal = self.resources.gang, self.resources.terminal
        while gang and gang.events:
            self._take_of_gang(gang.events.pop(0))
        while terminal and terminal.events:
            self._take_of_user(terminal.events.pop(0))
        if self._tasks.reports:
            self.reports += self._tasks.reports
            self._tasks.reports.clear()

    def _take_of_gang(self, event: GangEvent) -> None:
        if event is GangEvent.READY:
            finishing = self._tasks.role is not None and self._tasks.role.finishing
            if not finishing and not self.killing and self.phase is Phase.RUNNING:
                self._or_refuse(self._start_tasks)
        elif event is GangEvent.FAILED:
            if self._tasks.role:
                self._tasks.role.abort()
            if not self.killing and self.phase in (Phase.RUNNING, Phase.PREPARED):
                self._ending.ask(TERM_TO_KILL)
        else:
            self._end_when_over()
            if self._ended is not None:
                self.look()

    def _take_of_user(self, event: UserEvent) -> None:
        if isinstance(event, OutputPaused):
            if self._gang:
                self._gang.pause_output(event.paused)
            return
        if self.killing or self.phase is not Phase.RUNNING:
            return
        match event:
            case Signalled(sig):
                self.signal(sig, Scope.GROUPS)
            case Attached() if self.resources.waits_for_user:
                self._or_refuse(self._start_tasks)
            case Left() if self._tasks.began:
                self._ending.ask(self.spec.part.grace, signal.SIGHUP, signal.SIGCONT)
            case Left():
                self.kill()

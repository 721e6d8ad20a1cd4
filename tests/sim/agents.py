"""A host in virtual time: its starter with the processes, its agent with its memory, its disk.

An agent's restart keeps what the starter has; a boot ends the processes and loses all but the ends, which are on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from agent.core.lease import Granted
from lavad.core.job.job import End
from lavad.core.job.reports import PartReport
from lavad.core.rules.effects import Effect, KillPart, ReleasePart, SignalPart, StartPart, StopPart, TellHosts
from lavad.core.site.host import Facts
from tests.sim.net import Order, Stream
from tests.sim.timeline import Timeline
from tests.sim.watch import Watch
from tests.support.worlds.reports import report_of

HEARTBEAT = 10.0
KILL_TIME = 8.0


class Upstream(Protocol):
    """The master, as a host sees it."""

    def greet(self, host: Host, stream: Stream) -> None: ...
    def hear(self, host: Host, stream: Stream, reports: list[PartReport]) -> None: ...
    def beat(self, host: Host, stream: Stream, sent: float) -> None: ...


class Part:
    """An attempt on this host, as the starter has it."""

    def __init__(self, order: Order, deadline: float | None) -> None:
        effect = order.effect
        self.key, self.attempt, self.uid = effect.key, effect.attempt, effect.uid
        self.slots, self.first, self.deadline, self.lease = order.slots, order.first, deadline, order.lease
        self.chunk = order.chunk
        self.state = "prepared"
        self.left = 0.0
        self.since = 0.0
        self.stopped = False
        self.turn = 0
        """Grows whenever the natural end moves, so that an outdated one does nothing."""
        self.end: End | None = None
        self.signals: set[int] = set()
        self.killing = False


class Host:
    """``tasks`` says how long a job's process runs and with what wait status it ends.

    The class variables are rules that a broken host does not keep.
    """

    obeys_kill = True
    keeps_lease = True
    waits_for_go = True
    tells_truth = True
    keeps_chunks = True

    def __init__(self, name: str, slots: int, time: Timeline, watch: Watch, tasks: Callable[[int], tuple[float, int]]) -> None:
        self.name, self.slots = name, slots
        self.time, self.watch, self.tasks = time, watch, tasks
        self.boots = 1
        self.up = True
        self.agent_up = True
        self.parts: dict[str, Part] = {}
        self.refused: set[str] = set()
        self.waiting: list[Order] = []
        """Starts that wait for another job of their chunk."""
        self.high = 0
        self.outbox: list[PartReport] = []
        self._reports = 0
        self.stream: Stream | None = None
        self.upstream: Upstream | None = None
        self.granted = Granted(time.now)
        self.greeted = time.now
        self.trouble = 0.0
        """How likely a start is refused."""
        self.partitioned = False

    @property
    def facts(self) -> Facts:
        return Facts(ncpus=self.slots, max_mem=64_000, boot_id=f"{self.name}-{self.boots}", chunks=True)

    # -- the master ----------------------------------------------------------------------------------------------------

    def connect(self) -> None:
        """The agent looks for a master now and then."""
        may = self.up and self.agent_up and not self.partitioned and (self.stream is None or not self.stream.up)
        if may and self.upstream is not None:
            self.stream = Stream(self.time)
            self.waiting = []  # the master orders again what is still to run
            self.greeted = self.time.now
            self.upstream.greet(self, self.stream)
        self.time.after(self.time.random.uniform(0.5, 2.0), self.connect)

    def welcomed(self) -> None:
        """A new stream: everything not acknowledged goes again, and nothing before it."""
        self.granted = self.granted.greeted(self.greeted)
        if self.stream is not None:
            self.stream.welcomed = True
        if self.outbox:
            self._send(list(self.outbox))

    def beat(self) -> None:
        """A heartbeat."""
        if self._talks() and self.upstream is not None and self.stream is not None:
            stream, upstream, sent = self.stream, self.upstream, self.time.now
            stream.send("up", lambda: upstream.beat(self, stream, sent))
        self.time.after(HEARTBEAT, self.beat)

    def echoed(self, sent: float, extended: float) -> None:
        """The master heard the heartbeat of this time: leases go on from then."""
        self.granted = self.granted.answered(sent, extended)
        for part in self.parts.values():
            if part.deadline is not None:
                part.deadline = self.granted.deadline(part.lease)
                self._mind_lease(part)

    def acked(self, reports: list[PartReport]) -> None:
        """The master has these."""
        self.outbox = [report for report in self.outbox if report not in reports]
        for report in reports:
            part = self.parts.get(report.uid)
            if report.is_last and part is not None and part.state == "gone":
                del self.parts[report.uid]

    def _talks(self) -> bool:
        return self.up and self.agent_up and self.stream is not None and self.stream.up

    def _report(self, what: str, key: int, uid: str, *values: object) -> PartReport:
        self._reports += 1
        return replace(report_of(what, key, uid, self.name, *values), serial=self._reports)

    def _say(self, report: PartReport) -> None:
        if self.agent_up:
            self.outbox.append(report)
            self._send([report])

    def _send(self, reports: list[PartReport]) -> None:
        if self._talks() and self.upstream is not None and self.stream is not None and self.stream.welcomed:
            stream, upstream = self.stream, self.upstream
            stream.send("up", lambda: upstream.hear(self, stream, reports), twice=self.time.random.random() < 0.03)

    # -- orders --------------------------------------------------------------------------------------------------------

    def take(self, order: Order) -> None:
        """An order arrives."""
        effect = order.effect
        part = self.parts.get(effect.uid)
        if isinstance(effect, StartPart):
            self._start(order, effect, part)
        elif isinstance(effect, KillPart):
            self._kill_order(effect, part)
        elif part is None:
            if isinstance(effect, SignalPart) and effect.pending.ends and self._drop(effect.uid):
                self._say(self._report("gone", effect.key, effect.uid))
        elif isinstance(effect, ReleasePart):
            if part.state == "prepared":
                self._run(part)
        elif isinstance(effect, StopPart):
            self._stop(part, effect.stopped)
        elif isinstance(effect, SignalPart):
            self._signalled(part, effect)
        elif isinstance(effect, TellHosts) and effect.number and part.state == "running":
            ok = effect.number % 4 != 3
            number = effect.number
            delay = self.time.random.uniform(0.0, 2.0)
            self.time.after(delay, lambda: self._say(self._report("resized", part.key, part.uid, number, ok, "" if ok else "no")))

    def _start(self, order: Order, effect: StartPart, part: Part | None) -> None:
        if part is not None:
            self._say_state(part)
            return
        if effect.uid in self.refused or any(one.effect.uid == effect.uid for one in self.waiting):
            return
        stale = order.sequence <= self.high or self.time.now > order.expires
        self.high = max(self.high, order.sequence)
        if order.lease:
            self.watch.leased.add(effect.key)
            self.watch.may_repeat.add(effect.key)
        else:
            self.watch.leased.discard(effect.key)  # bswitch to another queue
        if stale or self.time.random.random() < self.trouble:
            self.refused.add(effect.uid)  # the master may offer it again before it hears of this
            self._say(self._report("refused", effect.key, effect.uid, "start", "an old order" if stale else "trouble"))
            return
        for other in list(self.parts.values()):
            older = other.key == effect.key and other.attempt < effect.attempt and other.state != "gone"
            if older:
                self.end(other, 9)
        if order.chunk and self.keeps_chunks and self._runs_chunk(order.chunk):
            self.waiting.append(order)
        else:
            self._begin(order, effect)

    def _runs_chunk(self, chunk: str) -> bool:
        return any(part.chunk == chunk and part.state != "gone" for part in self.parts.values())

    def _drop(self, uid: str) -> bool:
        """Whether a job waited in its chunk, and does so no longer."""
        before = len(self.waiting)
        self.waiting = [one for one in self.waiting if one.effect.uid != uid]
        return len(self.waiting) < before

    def _next_of(self, chunk: str) -> None:
        """A job of a chunk is over: the next one begins, unless its lease has passed."""
        if not chunk or not self.agent_up or not self.up or self._runs_chunk(chunk):
            return
        order = next((one for one in self.waiting if one.chunk == chunk), None)
        if order is None:
            return
        self.waiting.remove(order)
        deadline = self.granted.deadline(order.lease)
        if deadline is None or deadline > self.time.now or not self.keeps_lease:
            self._begin(order, order.effect)
        else:
            self._next_of(chunk)

    def _begin(self, order: Order, effect: Effect) -> None:
        part = Part(order, self.granted.deadline(order.lease))
        self.parts[part.uid] = part
        self._mind_lease(part)
        if isinstance(effect, StartPart) and effect.two_phase and self.waits_for_go:
            self._say(self._report("prepared", part.key, part.uid, f"{self.name}:1"))
        else:
            self._run(part)

    def _say_state(self, part: Part) -> None:
        if part.state == "prepared":
            self._say(self._report("prepared", part.key, part.uid, f"{self.name}:1"))
        elif part.state == "running":
            self._say(self._report("started", part.key, part.uid, 77, self.time.now, "/"))

    def _kill_order(self, effect: KillPart, part: Part | None) -> None:
        if part is None:
            self._drop(effect.uid)
            self.refused.add(effect.uid)
        if part is None or part.state == "gone":
            self._say(self._report("gone", effect.key, effect.uid))
        elif self.obeys_kill:
            self.time.after(self.time.random.uniform(0.001, 0.5), lambda: self.end(part, 9))

    def _stop(self, part: Part, stopped: bool) -> None:
        if part.state == "running" and part.stopped != stopped:
            part.stopped = stopped
            part.turn += 1
            if stopped:
                part.left -= self.time.now - part.since
            else:
                self._go_on(part)
        self._say(self._report("stopped", part.key, part.uid, stopped))

    def _signalled(self, part: Part, effect: SignalPart) -> None:
        pending = effect.pending
        if pending.unless_begun:
            self._say(self._report("granted", part.key, part.uid, pending.number, False, "it has begun"))
            return
        if pending.number not in part.signals:
            part.signals.add(pending.number)
            if pending.ends and not part.killing:
                part.killing = True
                delay = self.time.random.uniform(0.01, KILL_TIME)
                self.time.after(delay, lambda: self.end(part, 9))
        self._say(self._report("granted", part.key, part.uid, pending.number, True, ""))

    # -- processes -----------------------------------------------------------------------------------------------------

    def _run(self, part: Part) -> None:
        part.state = "running"
        part.left = self.tasks(part.key)[0] * (1.0 if part.first else self.time.random.uniform(0.9, 1.1))
        self.watch.started(part.key, part.uid, self.name, part.slots)
        self._go_on(part)
        if part.left > 1.0 or self.time.random.random() < 0.5:
            self._say(self._report("started", part.key, part.uid, 77, self.time.now, "/"))

    def _go_on(self, part: Part) -> None:
        part.since = self.time.now
        turn = part.turn
        status = self.tasks(part.key)[1] if part.first else 0

        def done() -> None:
            if part.turn == turn and self.parts.get(part.uid) is part:
                self.end(part, status)

        self.time.after(max(0.0, part.left), done)

    def end(self, part: Part, status: int, reason: str = "") -> None:
        """The part ends; what is left of it may take a moment to go."""
        if self.parts.get(part.uid) is not part or part.state in ("ended", "gone"):
            return
        if part.state == "prepared":
            part.state = "gone"
            part.end = End(at=self.time.now, lost="it was killed before it ran", first_reason=reason)
        else:
            self.watch.ended(part.uid, self.name, status)
            status = status if self.tells_truth else 512
            part.end = End(status=status, at=self.time.now, started=part.since, first_reason=reason)
            part.state = "gone" if self.time.random.random() < 0.7 else "ended"
        self._say(self._report("ended", part.key, part.uid, part.end, part.state == "gone"))
        self._next_of(part.chunk)
        if part.state == "ended":
            self.time.after(self.time.random.uniform(0.01, 3.0), lambda: self._clear(part))

    def _clear(self, part: Part) -> None:
        if self.parts.get(part.uid) is part and part.state == "ended":
            part.state = "gone"
            self._say(self._report("gone", part.key, part.uid))
            self._next_of(part.chunk)

    def _mind_lease(self, part: Part) -> None:
        if part.deadline is None:
            return

        def look() -> None:
            alive = self.parts.get(part.uid) is part and part.state in ("prepared", "running")
            if alive and self.keeps_lease and part.deadline is not None and self.time.now >= part.deadline:
                self.end(part, 9, "lease")

        self.time.after(max(0.0, part.deadline - self.time.now), look)

    # -- faults --------------------------------------------------------------------------------------------------------

    def crash_agent(self, down: float) -> None:
        """The agent dies and comes back without its memory; starter and processes go on."""
        self.time.tell(f"{self.name}: its agent crashes for {down:.0f} s")
        self.agent_up = False
        self._cut()
        self.outbox, self.waiting = [], []
        self.refused = set()

        def back() -> None:
            if self.agent_up:
                return
            self.agent_up = True
            for part in self.parts.values():
                if part.end is not None:
                    self.outbox.append(self._report("ended", part.key, part.uid, part.end, part.state == "gone"))
                else:
                    self._say_state(part)

        self.time.after(down, back)

    def boot(self, down: float) -> None:
        """The host goes down with all that it has, and comes back knowing only what is on its disk.

        On it are the parts that its starter took, noted before any of them ran, and the ends that it knew of.
        """
        self.time.tell(f"{self.name}: goes down for {down:.0f} s")
        self.outbox, self.waiting = [], []
        for part in self.parts.values():
            if part.state == "running":
                self.watch.ended(part.uid, self.name, None)
            if part.end is None:
                part.end = End(at=self.time.now, lost="the starter was restarted")
        for part in self.parts.values():
            part.state = "gone"
            self.outbox.append(self._report("ended", part.key, part.uid, part.end, True))
        self.refused = set()
        self.up = False
        self._cut()

        def back() -> None:
            self.boots += 1
            self.up = self.agent_up = True

        if down >= 0:
            self.time.after(down, back)

    def part_from_net(self, down: float) -> None:
        """Nothing gets through; all that runs here goes on."""
        self.time.tell(f"{self.name}: is cut off for {down:.0f} s")
        self.partitioned = True
        self._cut()

        def back() -> None:
            self.partitioned = False

        self.time.after(down, back)

    def _cut(self) -> None:
        if self.stream is not None:
            self.stream.cut()

"""A master in virtual time: the real decisions, folds, effects, sessions and scheduler around a disk that keeps commits.

A crash loses all but the disk; a commit takes time, may fail, and may be cut off before or after it is on the disk.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.hosts import expired, greeted, silent
from lavad.core.decide.control.office import take_office
from lavad.core.decide.placement.placement import accept_plan
from lavad.core.decide.report.report import decide_reports, independent
from lavad.core.events.apply import apply_all
from lavad.core.job.chunk import slots_in
from lavad.core.job.job import Job
from lavad.core.job.reports import PartReport
from lavad.core.job.resize import is_part, uid_of
from lavad.core.lang.asks import Refused
from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import Soft
from lavad.core.rules.effects import KillPart, SignalPart, StartPart, effects_due
from lavad.core.site.conf import Conf
from lavad.hosts.leases import Leases
from lavad.hosts.sessions import Session, Sessions
from lavad.sched.cycle.cycle import schedule
from lavad.sched.state.scheduler_cache import SchedulerCache
from lavad.store.batch import Batch, batch_of
from proto.answers import Answer
from tests.sim.agents import Host
from tests.sim.checks import check_capacity
from tests.sim.net import Order, Stream
from tests.sim.timeline import Timeline
from tests.support.worlds.snapshot import snapshot
from tests.support.worlds.world import QUIET

Decide = Callable[[Cluster, float], Decided]
OnAnswer = Callable[[Answer | None, str], None]
"""Called with the answer, or with None and why it was refused; not at all when the master dies first."""
START_EXPIRES = 60.0


class Disk:
    """What outlives a master."""

    def __init__(self) -> None:
        self.events: list[ev.Event] = []
        self.answers: dict[str, Answer] = {}
        self.epoch = 0


class Ask:
    """What one caller asks for."""

    def __init__(self, decides: list[Decide], uuid: str, answer: OnAnswer) -> None:
        self.decides, self.uuid, self.answer = decides, uuid, answer


def no_answer(answer: Answer | None, why: str) -> None:
    """Nobody waits."""


class Master:
    """One reign, from its start to its crash. The class variables are rules that a broken master does not keep."""

    remembers = True
    leases_of: type[Leases] = Leases
    answers_once = True
    cycle = 0.5
    """Seconds between two cycles of the scheduler."""
    checks = True
    """Every turn is checked for what must hold of a cluster."""
    capacity_changes = False
    """Hosts may come to have fewer slots than are in use there."""

    def __init__(self, time: Timeline, disk: Disk, conf: Conf, hosts: dict[str, Host]) -> None:
        self.time, self.disk, self.hosts = time, disk, hosts
        self.alive = True
        self.day_clock = 0.0
        """By how much the time of day here is off: what events are dated by, and nothing else."""
        self.cluster = Cluster()
        apply_all(self.cluster, disk.events)
        self.cluster.forget_changes()
        disk.epoch += 1
        self.sessions = Sessions()
        self.streams: dict[str, Stream] = {}
        self.soft = Soft()
        self.memory = SchedulerCache(chunks=True)
        self.leases = self.leases_of(time.now)
        self.former = {job.run.uid for job in self.cluster.jobs.rows.values() if job.run is not None}
        self.seeds = 0
        self.fail_next = False
        self.crash_in_commit = ""
        self._waiting: list[Ask] = []
        self._busy = False
        started = ev.MasterStarted(at=time.now, epoch=disk.epoch, incarnation="sim")
        self.ask(lambda cluster, now: take_office(cluster, now, started, conf))
        self._loop(1.0, self._watch_hosts)
        self._loop(self.cycle, self._schedule)

    def _loop(self, pause: float, work: Callable[[], None]) -> None:
        def again() -> None:
            if self.alive:
                work()
                self.time.after(pause, again)

        self.time.after(pause, again)

    @property
    def is_settled(self) -> bool:
        """Whether what is in memory is on the disk."""
        return self.alive and not self._busy

    def crash(self) -> None:
        """The process dies; every stream breaks."""
        self.alive = False
        for stream in self.streams.values():
            stream.cut()

    # -- the engine ----------------------------------------------------------------------------------------------------

    def ask(self, decide: Decide, uuid: str = "", answer: OnAnswer = no_answer) -> None:
        """Queue a request for the next turn."""
        self.ask_all([decide], uuid, answer)

    def ask_all(self, decides: list[Decide], uuid: str = "", answer: OnAnswer = no_answer) -> None:
        """Several, in one commit."""
        self._waiting.append(Ask(decides, uuid, answer))
        if not self._busy:
            self._busy = True
            self.time.after(0.0, self._turn)

    def _turn(self) -> None:
        if not self.alive:
            return
        asks, self._waiting = self._waiting, []
        if not asks:
            self._busy = False
            return
        before = snapshot(self.cluster) if self.checks else None
        events: list[ev.Event] = []
        given: dict[str, Answer] = {}
        answers: list[tuple[Ask, Answer | None, str]] = []
        for ask in asks:
            known = (self.disk.answers.get(ask.uuid) or given.get(ask.uuid)) if ask.uuid and self.answers_once else None
            if known is not None:
                answers.append((ask, known, ""))
                continue
            try:
                answer = self._decide(ask, events)
            except Refused as refusal:
                answers.append((ask, None, refusal.text))
                continue
            given.update({ask.uuid: answer} if ask.uuid else {})
            answers.append((ask, answer, ""))
        if self.checks:
            check_invariants(self.cluster)
            if not self.capacity_changes:
                check_capacity(self.cluster)
        delay = self.time.random.uniform(0.001, 0.02)
        self.time.after(delay, lambda: self._committed(before, events, given, answers))

    def _decide(self, ask: Ask, events: list[ev.Event]) -> Answer:
        answer: Answer = {}
        for decide in ask.decides:
            decided = decide(self.cluster, self.time.now + self.day_clock)
            apply_all(self.cluster, decided.events)
            events += decided.events
            answer = decided.answer
        return answer

    def _committed(
        self,
        before: object,
        events: list[ev.Event],
        given: dict[str, Answer],
        answers: list[tuple[Ask, Answer | None, str]],
    ) -> None:
        if not self.alive:
            return
        if self.crash_in_commit == "before":
            return self.crash()
        if self.fail_next and events:
            self.fail_next = False
            self.cluster.undo_changes()
            assert snapshot(self.cluster) == before, "an undone batch left something behind"
            check_invariants(self.cluster)
            answers = [(ask, None, why or "The master's store is full") for ask, _, why in answers]
        else:
            if self.remembers:
                self.disk.events += events
            self.disk.answers.update(given)
            if self.crash_in_commit == "after":
                return self.crash()
            batch = batch_of(self.cluster, events)
            self.cluster.forget_changes()
            self._tell(batch)
        for ask, answer, why in answers:
            ask.answer(answer, why)
        self._turn()

    # -- effects -------------------------------------------------------------------------------------------------------

    def _tell(self, batch: Batch) -> None:
        self.sessions.offer(job for job in batch.jobs if job.run is not None)
        self.sessions.end_attempts(batch.finished)
        for session in list(self.sessions.rows.values()):
            self._pump(session)

    def _pump(self, session: Session) -> None:
        host = self.hosts[session.host]
        stream = self.streams[session.host]
        if not stream.greeted:
            return  # nothing comes before the welcome
        for effect in session.take_due():
            job = self.cluster.find_job(effect.key)
            live = job is not None and job.run is not None and is_part(job.run, effect.host, effect.uid)
            if not live and not isinstance(effect, KillPart):
                continue
            order = Order(effect, 0, True, 0, self.time.now + START_EXPIRES, 0.0)
            if isinstance(effect, StartPart) and job is not None:
                order = self._start_order(session, effect, job)
            self.time.tell(f"master -> {session.host}: {type(effect).__name__} {effect.uid}{_kind(effect)}")
            stream.send("down", partial(host.take, order))

    def _start_order(self, session: Session, effect: StartPart, job: Job) -> Order:
        assert job.run is not None
        session.sequence += 1
        self.sessions.sent.setdefault(effect.host, {})[effect.uid] = effect.key
        part = next(part for part in job.run.parts if part.host == effect.host)
        first = job.run.parts[0] is part
        return Order(effect, slots_in(part), first, session.sequence, self.time.now + START_EXPIRES, job.run.lease, job.run.chunk)

    # -- hosts ---------------------------------------------------------------------------------------------------------

    def greet(self, host: Host, stream: Stream) -> None:
        """A host's greeting arrives after a while."""
        known = {part.uid: (part.state, part.key, part.attempt) for part in host.parts.values()}
        facts, high = host.facts, host.high

        def arrive() -> None:
            if not self.alive:
                stream.cut()
                return
            if not self.leases.answer(host.name, self.time.now):
                stream.cut()
                return
            session = Session(host.name, high)
            self.leases.heard(host.name, self.time.now)
            self.streams[host.name] = stream
            self.sessions.open(session)

            def decide(cluster: Cluster, now: float) -> Decided:
                states = {uid: state for uid, (state, _, _) in known.items()}
                return Decided(events=greeted(cluster, host.name, facts, states, now, self._was_sent(host.name)))

            def done(answer: object, why: str) -> None:
                if answer is None:
                    stream.cut()  # it greets again
                elif self.sessions.rows.get(host.name) is session:
                    self._greeted(host, session, known)

            self.ask(decide, answer=done)

        stream.send("up", arrive)

    def _was_sent(self, host: str) -> Callable[[Any], bool]:
        return lambda run: run.uid in self.former or run.uid in self.sessions.sent.get(host, ())

    def _greeted(self, host: Host, session: Session, known: dict[str, tuple[str, int, int]]) -> None:
        stream = self.streams[host.name]
        keys = sorted(self.cluster.use.hosts[host.name].jobs)
        jobs = [self.cluster.jobs.rows[key] for key in keys]
        live = {uid_of(job.run, part) for job in jobs if job.run is not None for part in job.run.parts if part.host == host.name}
        for uid, (_, key, attempt) in known.items():
            if uid not in live:
                kill = KillPart(host=host.name, key=key, attempt=attempt, uid=uid)
                order = Order(kill, 0, True, 0, 0.0, 0.0)
                stream.send("down", partial(host.take, order))
        stream.send("down", host.welcomed)
        stream.greeted = True
        for job in jobs:
            if job.run is not None:
                session.offer(job.run.uid, [effect for effect in effects_due(job) if effect.host == host.name])
        self._pump(session)

    def hear(self, host: Host, stream: Stream, said: list[PartReport]) -> None:
        """Reports arrive."""
        if not self.alive or self.streams.get(host.name) is not stream:
            return
        self.leases.heard(host.name, self.time.now)

        def bound(reports: list[PartReport]) -> Decide:
            def on_cluster(cluster: Cluster, now: float) -> Decided:
                if not stream.up:
                    raise Refused("What went before it was refused")
                return Decided(events=decide_reports(cluster, reports, now))

            return on_cluster

        def done(answer: object, why: str) -> None:
            if answer is None:
                stream.cut()
            else:
                stream.send("down", lambda: host.acked(said))

        for report in said:
            self.time.tell(f"{host.name} -> master: {report}")
        self.ask_all([bound(reports) for reports in independent(said)], answer=done)

    def beat(self, host: Host, stream: Stream, sent: float) -> None:
        """A heartbeat arrives."""
        if not self.alive or self.sessions.rows.get(host.name) is None or self.streams.get(host.name) is not stream:
            return
        self.leases.heard(host.name, self.time.now)
        self.soft.load[host.name] = dict(QUIET)
        if self.leases.answer(host.name, self.time.now):
            extended = self.leases.extended_for(self.time.now)
            stream.send("down", lambda: host.echoed(sent, extended))

    def _watch_hosts(self) -> None:
        found = self.leases.look(self.cluster, self.time.now)
        for name, _ in found.silent:
            self.time.tell(f"master: {name} is silent")
            self.sessions.hang_up(name)
            if name in self.streams:
                self.streams[name].cut()
            self.ask(partial(_silent, name))
        for name, keys in found.expired:
            self.time.tell(f"master: {name} is fenced")
            self.ask(partial(_expired, name, keys))

    def accept(self, cluster: Cluster, plan: Plan, now: float, seed: str) -> list[ev.Event]:
        """What becomes of a plan."""
        return accept_plan(cluster, plan, now, seed)

    def plan(self, memory: SchedulerCache) -> Plan:
        """What the scheduler proposes."""
        return schedule(self.cluster, self.soft, self.time.now + self.day_clock, self.local(), memory)

    def local(self) -> Local:
        """The time of day at the site."""
        return 1, 12 * 3600

    # -- the scheduler -------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        """A cycle between two turns; its plan may be stale when the engine comes to it."""
        rows = self.cluster.jobs.rows
        preempted = any(rows[key].preempted_for for key in self.cluster.suspended)
        if self._busy or not (self.cluster.pending or preempted):
            return
        for name in self.hosts:
            self.soft.load.setdefault(name, dict(QUIET))
        plan = self.plan(self.memory)
        self.seeds += 1
        seed = f"e{self.disk.epoch}s{self.seeds}."

        def decide(cluster: Cluster, now: float) -> Decided:
            return Decided(events=self.accept(cluster, plan, now, seed))

        if plan.decides:
            delay = self.time.random.uniform(0.0, 0.1)
            self.time.after(delay, lambda: self.ask(decide) if self.alive else None)


def _silent(host: str, cluster: Cluster, now: float) -> Decided:
    return Decided(events=silent(cluster, host, now))


def _expired(host: str, keys: list[int], cluster: Cluster, now: float) -> Decided:
    return Decided(events=expired(cluster, host, keys, now))


def _kind(effect: object) -> str:
    return f" {effect.pending.kind}" if isinstance(effect, SignalPart) else ""

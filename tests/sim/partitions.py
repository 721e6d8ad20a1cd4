"""Two masters on one database, their hosts, and a network that may part any two of them; processes stop, machines sleep, clocks
are set. A job that runs in two places at once, or twice where it may not, is ``Broken``."""

from __future__ import annotations

from typing import Any

from lavad.core import events as ev
from lavad.core.decide.control.office import extend_leases, note_extension
from lavad.core.lang.asks import Caller, Lease, OptionValue
from lavad.core.site.conf import Conf, Params
from lavad.hosts.leases import Leases
from proto.answers import Answer
from tests.sim.agents import Host, Part
from tests.sim.master import Ask, Disk, Master
from tests.sim.process import Process
from tests.sim.simulation import Simulation
from tests.sim.timeline import Timeline
from tests.sim.watch import Watch

BOSS = Caller(user="root", uid=0, host="m1")
GIVE_UP = 25.0
"""Seconds after which a request to a database that does not answer has failed."""
DEAF = 25.0
"""Seconds without a word of the master after which an agent looks for another."""
FROZEN = 4.5
"""Seconds by which the starter ends a part later than its shepherd would have."""
PARTITIONS = (
    "master-database", "master-database", "master-host", "master-host", "master-hosts", "stop master", "stop master",
    "kill master", "stop agent", "stop agent", "agent", "freeze shepherds", "sleep", "boot", "boot after an order",
    "master's clock", "database's clock", "extend", "cut",
)  # fmt: skip


class Row:
    """The masters' lease in the database, on the database's clock."""

    def __init__(self, time: Timeline, disk: Disk) -> None:
        self.time, self.disk = time, disk
        self.step = 0.0
        self.holder, self.expires = "", 0.0

    def acquire(self, holder: str, seconds: float) -> bool:
        """As lavad.store.lease has it."""
        now = self.time.now + self.step
        if self.holder not in ("", holder) and now < self.expires:
            return False
        self.holder, self.expires = holder, now + seconds
        return True

    def renew(self, epoch: int, seconds: float) -> bool:
        """Unless another has taken over."""
        if self.disk.epoch != epoch:
            return False
        self.expires = self.time.now + self.step + seconds
        return True


class CutMaster(Master):
    """One reign that can be parted from its database."""

    checks = False
    cycle = 3.0

    def __init__(self, lavad: Lavad, disk: Disk, conf: Conf, hosts: dict[str, Host], leases: Leases) -> None:
        self._given = leases
        self.lavad = lavad
        super().__init__(lavad.process, disk, conf, hosts)
        self.epoch = disk.epoch
        self.day_clock = lavad.day_clock
        self.leases = leases
        self.leases.extend(self.time.now, self.cluster.extended[1])
        self._loop(30.0, self._note)

    def _note(self) -> None:
        left = self.leases.extended_for(self.time.now)
        if left or self.cluster.extended[1]:
            self.ask(lambda cluster, now: note_extension(cluster, left, now))

    def _committed(
        self, before: object, events: list[ev.Event], given: dict[str, Answer], answers: list[tuple[Ask, Answer | None, str]]
    ) -> None:
        if not self.alive:
            return
        if not self.lavad.reaches_database and events:
            since = self.time.now
            self._later(since, lambda: self._committed(before, events, given, answers))
            return
        if self.disk.epoch != self.epoch:
            self.lavad.resign("another master has taken over")
            return
        super()._committed(before, events, given, answers)
        for event in events:
            if isinstance(event, ev.LeasesExtended) and event.by and self.alive:
                self.leases.extend(self.time.now, event.seconds)

    def _later(self, since: float, again: Any) -> None:
        def look() -> None:
            if self.time.now - since > GIVE_UP:
                self.lavad.resign("a commit has an unknown outcome")
            elif self.lavad.reaches_database:
                again()
            else:
                self.time.after(0.5, look)

        self.time.after(0.5, look)


class Lavad:
    """A daemon: waits for the lease, is master while it has it."""

    def __init__(self, name: str, world: Partitions) -> None:
        self.name, self.world = name, world
        self.process = Process(world.time)
        self.day_clock = 0.0
        self.parted_from: set[str] = set()
        self.office: CutMaster | None = None
        self.starts = 0
        self._try()

    @property
    def reaches_database(self) -> bool:
        return "database" not in self.parted_from

    def _try(self) -> None:
        if self.office is None and self.reaches_database:
            asked, row = self.process.now, self.world.row
            seconds = self.world.conf.params.masters_lease
            delay = self.world.time.random.choice((0.001, 0.1, 3.0))

            def answered(taken: bool) -> None:
                if taken and self.office is None:
                    self._serve(asked, seconds)

            def at_database() -> None:
                if self.reaches_database and row.acquire(self.name, seconds):
                    self.process.after(delay, lambda: answered(True))

            self.world.time.after(delay, at_database)
        self.process.after(self.world.time.random.uniform(4.0, 9.0), self._try)

    def _serve(self, asked: float, seconds: float) -> None:
        row = self.world.row
        if row.holder != self.name:
            return
        leases = self.world.leases_of(self.process.now, asked + seconds)
        self.office = CutMaster(self, self.world.disk, self.world.conf, dict(self.world.hosts), leases)
        self.world.master = self.office
        self.world.time.tell(f"{self.name} is master, epoch {self.office.epoch}")
        self._renew(self.office, seconds)

    def _renew(self, office: CutMaster, seconds: float) -> None:
        asked = self.process.now
        delay = self.world.time.random.choice((0.001, 0.001, 0.2, 2.0))

        def answered(renewed: bool) -> None:
            if not renewed:
                self.resign("another master has taken over")
                return
            office.leases.held(asked + seconds)
            again()

        def failed() -> None:
            if office.leases.is_certain(self.process.now):
                again()
            else:
                self.resign("the lease ran out")

        def again() -> None:
            self.process.after(seconds / 4, lambda: self._renew(office, seconds) if self.office is office else None)

        def at_database() -> None:
            if self.reaches_database:
                renewed = self.world.row.renew(office.epoch, seconds)
                self.process.after(delay, lambda: answered(renewed) if self.office is office else None)
            else:
                self.process.after(GIVE_UP, lambda: failed() if self.office is office else None)

        self.world.time.after(delay, at_database)

    def resign(self, why: str) -> None:
        """Memory is thrown away, every stream ends."""
        if self.office is not None:
            self.world.time.tell(f"{self.name} is no longer master: {why}")
            self.office.crash()
            self.office = None

    def kill(self, away: float) -> None:
        """SIGKILL; another process of the name starts later."""
        self.resign("killed")
        self.process.stop(away)


class CutHost(Host):
    """A host that looks for a master among several."""

    def __init__(self, name: str, slots: int, time: Timeline, watch: Watch, tasks: Any) -> None:
        self.world: Partitions | None = None
        self.machine = Process(time)
        self.agent = Process(time, self.machine)
        self.frozen = False
        self.epoch = 0
        self.heard = time.now
        self._of_stream: CutMaster | None = None
        super().__init__(name, slots, self.machine, watch, tasks)

    def connect(self) -> None:
        """The next of the masters that it reaches; a stream that says nothing is given up."""
        if self.agent.stopped:
            self.agent.run_when_awake(self.connect)
            return
        if self.stream is not None and self.stream.up and self.time.now - self.heard > DEAF:
            self.stream.cut()
        self.upstream = None
        if self.world is not None and (self.stream is None or not self.stream.up):
            lavad = self.time.random.choice(self.world.lavads)
            if lavad.office is not None and self.name not in lavad.parted_from:
                self.upstream = lavad.office if lavad.office.epoch >= self.epoch else None
                self.epoch = max(self.epoch, lavad.office.epoch)
        elif self.stream is not None:
            self.upstream = self._of_stream
        super().connect()
        if self.upstream is not None and self.stream is not None and not self.stream.ends:
            office = self.upstream
            assert isinstance(office, CutMaster)
            self._of_stream, self.heard = office, self.time.now
            self.stream.ends = {"up": office.lavad.process.run_when_awake, "down": self._takes}

    def _takes(self, message: Any) -> None:
        def take() -> None:
            self.heard = self.time.now
            message()

        self.agent.run_when_awake(take)

    def beat(self) -> None:
        """Unless the agent is stopped."""
        if self.agent.stopped:
            self.agent.run_when_awake(self.beat)
        else:
            super().beat()

    def _mind_lease(self, part: Part) -> None:
        late = FROZEN if self.frozen else 0.0
        if part.deadline is None:
            return

        def look() -> None:
            alive = self.parts.get(part.uid) is part and part.state in ("prepared", "running")
            if alive and self.keeps_lease and part.deadline is not None and self.time.now >= part.deadline + late:
                self.end(part, 9, "lease")

        self.time.after(max(0.0, part.deadline + late + 0.001 - self.time.now), look)

    def sleep(self, seconds: float) -> None:
        """The whole machine is suspended: nothing runs, the clock goes on; its leases are looked at first when it wakes."""
        self.time.tell(f"{self.name}: sleeps for {seconds:.0f} s")
        self.watch.asleep.add(self.name)
        self.machine.stop(seconds)

        def woke() -> None:
            for part in list(self.parts.values()):
                if part.deadline is not None and self.time.now >= part.deadline and part.state in ("prepared", "running"):
                    self.end(part, 9, "lease")
            self.watch.woke(self.name)

        self.machine.run_when_awake(woke)


class Partitions(Simulation):
    """``run`` as of a simulation, with other faults."""

    def __init__(
        self, seed: int, leases: type[Leases] = Leases, host: type[CutHost] = CutHost, margin: int = 26, **more: Any
    ) -> None:
        self.leases_of = leases
        self._margin = margin
        self.lavads: list[Lavad] = []
        super().__init__(seed, jobs=9, faulty=1200.0, elastic=0.1, pause=50.0, force=False, faults=PARTITIONS, host=host)

    def _task(self, key: int) -> tuple[float, int]:
        """Long jobs: a master that nothing is asked of does not notice that it has lost its database."""
        length, status = super()._task(key)
        return 6.0 * length, status

    def _options(self) -> dict[str, OptionValue]:
        """Most jobs may run again."""
        options = super()._options()
        return options | {"r": True} if self.time.random.random() < 0.6 else options

    def _new_master(self) -> Master:
        params = Params(lava_host_timeout=20, lava_lease=30, lava_lease_margin=self._margin, lsf_root_user=True)
        self.conf = Conf(params=params, queues=self.conf.queues, hosts=self.conf.hosts, admins=("root",))
        self.row = Row(self.time, self.disk)
        for one in self.hosts.values():
            assert isinstance(one, CutHost)
            one.world = self
        nobody = Master(self.time, Disk(), self.conf, {})
        nobody.crash()
        self.lavads += [Lavad("m1", self), Lavad("m2", self)]
        return nobody

    def _fault(self) -> None:
        if self.time.now - 1_000_000.0 > self.faulty:
            return
        random = self.time.random
        host = self.hosts[random.choice(self.names)]
        assert isinstance(host, CutHost)
        away = random.choice((2.0, 15.0, 40.0, 90.0, 170.0, 400.0))
        self._befalls(random.choice(self.faults), host, random.choice(self.lavads), away)
        self.time.after(random.uniform(1.0, self.pause), self._fault)

    def _befalls(self, what: str, host: CutHost, lavad: Lavad, away: float) -> None:
        self.time.tell(f"fault: {what} ({lavad.name}, {host.name}, {away:.0f} s)")
        parted = {"master-database": {"database"}, "master-host": {host.name}, "master-hosts": set(self.names)}
        if what in parted:
            self._part(lavad, parted[what], away)
        elif what == "stop master":
            lavad.process.stop(away)
        elif what == "kill master":
            lavad.kill(away)
        elif what == "master's clock":
            lavad.day_clock = self.time.random.choice((-5_000.0, -700.0, 0.0, 700.0, 5_000.0))
            if lavad.office is not None:
                lavad.office.day_clock = lavad.day_clock
        elif what == "database's clock":
            self.row.step += self.time.random.choice((-100.0, -10.0, 10.0, 3600.0))
        elif what == "extend":
            ask = Lease(seconds=self.time.random.choice((100.0, 300.0)))
            if self.master.alive and self.time.random.random() < 0.2:
                self.master.ask(lambda cluster, now: extend_leases(cluster, ask, BOSS, now))
        else:
            self._befalls_host(what, host, away)

    def _befalls_host(self, what: str, host: CutHost, away: float) -> None:
        if what == "stop agent":
            host.agent.stop(away)
        elif what == "agent" and host.up and host.agent_up:
            host.crash_agent(away)
        elif what == "freeze shepherds":
            host.frozen = not host.frozen
        elif what == "sleep" and not host.machine.stopped:
            host.sleep(away)
        elif what == "boot" and host.up and not host.machine.stopped:
            host.boot(away)
        elif what == "boot after an order":
            self._boot_after_an_order(host, away)
        elif what == "cut" and host.stream is not None:
            host.stream.cut()

    def _part(self, lavad: Lavad, others: set[str], away: float) -> None:
        """Messages under way are lost with their stream, or come when the network is whole again."""
        lavad.parted_from |= others
        for name in sorted(others & set(self.names)):
            stream = lavad.office.streams.get(name) if lavad.office is not None else None
            if stream is not None and self.time.random.random() < 0.5:
                stream.cut()
            elif stream is not None:
                stream.hold(away)
        self.time.after(away, lambda: lavad.parted_from.difference_update(others))

    def _boot_after_an_order(self, host: CutHost, away: float) -> None:
        """Down right after it took a start."""
        high = host.high

        def look() -> None:
            if host.high != high and host.up and not host.machine.stopped:
                host.boot(away)
            elif self.time.now < deadline:
                self.time.after(0.01, look)

        deadline = self.time.now + 30.0
        look()

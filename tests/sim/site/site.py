"""A site in virtual time under faults: jobs that wait for others, take licences, want hosts alone or are in groups and
advance reservations, users who change them, and an administrator who closes hosts and queues and changes the configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from config.model.cluster import Limit
from config.model.queue import QueueConfig
from config.model.values import RequeueExit
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base import groups
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import control, force, hosts, office, queues
from lavad.core.decide.modify import modify, position, switch
from lavad.core.decide.reserve import reservations
from lavad.core.job.job import Job
from lavad.core.job.spec import JobText
from lavad.core.lang import asks
from lavad.core.lang.asks import OptionValue, Select
from lavad.core.lang.ids import job_of
from lavad.core.lang.states import TermReason
from lavad.core.site.conf import Conf, ResourceConf
from tests.sim.master import Master
from tests.sim.simulation import ALICE, SLOTS, Simulation
from tests.sim.site.site_master import BRUN, GROUP, LICENCES, MANY, SiteMaster, local

CALM_AT_FIRST = 1_500.0
"""Seconds after the faults in which whatever can start has started."""


class SiteSimulation(Simulation):
    """As ``Simulation``, at a site with all that is told above."""

    away = (0.5, 5.0, 40.0, 90.0, 200.0)
    users_pause = 15.0

    def __init__(self, seed: int, master: type[SiteMaster] = SiteMaster, jobs: int = 30, **options: Any) -> None:
        super().__init__(seed, hosts=4, jobs=jobs, faulty=1200.0, preempts=True, elastic=0.1, master=master, **options)

    def _new_master(self) -> Master:
        if not self.disk.epoch:
            self.base = self.conf = self._site(self.conf)
        return super()._new_master()

    def _site(self, conf: Conf) -> Conf:
        more = (
            QueueConfig(
                name="retry", priority=25, exclusive=True, requeue_exit_values=RequeueExit(values=(1,)), max_job_requeue=2
            ),
            QueueConfig(name="big", priority=35, slot_reserve=MANY, exclusive=True),
            QueueConfig(name="fill", priority=10, backfill=True, exclusive=True),
        )
        self.queues += [queue.name for queue in more]
        return replace(
            conf,
            admins=("alice",),
            queues=tuple(replace(queue, exclusive=True) for queue in conf.queues) + more,
            resources=(ResourceConf(name="lic", kind="numeric", consumable=True, locations=((float(LICENCES), ("all",)),)),),
            limits=(Limit(name="alice", users=("alice",), slots=SLOTS * len(conf.hosts)),),
        )

    def _changed(self) -> Conf:
        """A configuration with another number of hosts, slots, queues or of what a user may have."""
        random, conf = self.time.random, self.base
        what = random.choice(("less slots", "host gone", "queue gone", "limit", "as ever", "as ever"))
        self.time.tell(f"admin: {what}")
        if what == "less slots":
            return replace(conf, hosts=(replace(conf.hosts[0], slots=2), *conf.hosts[1:]))
        if what == "host gone":
            return replace(conf, hosts=conf.hosts[:-1])
        if what == "queue gone":
            gone = random.choice(("fill", "retry", "again"))
            return replace(conf, queues=tuple(queue for queue in conf.queues if queue.name != gone))
        if what == "limit":
            return replace(conf, limits=(replace(conf.limits[0], slots=random.choice((5, 9))),))
        return conf

    # -- users ---------------------------------------------------------------------------------------------------------

    def _options(self) -> dict[str, OptionValue]:
        random = self.time.random
        options = super()._options()
        one = random.random()
        if one < 0.25 and self.acknowledged and (condition := self._condition(options)):
            options["w"] = condition
            if random.random() < 0.3:
                options["ti"] = True
        elif one < 0.45:
            options["R"] = f"rusage[lic={random.choice((1, 1, 2, 3))}]"
        elif one < 0.55 and "ar" not in options:
            options["x"] = True
        elif one < 0.7:
            options["g"] = GROUP
        elif one < 0.8 and (names := list(self.master.cluster.reservations.rows)) and "ar" not in options:
            options["U"] = random.choice(names)
        if options.get("q") == "retry":
            options["r"] = True
        if random.random() < 0.6:
            options["W"] = str(random.choice((1, 5, 20)))
        return options

    def _live(self) -> list[int]:
        cluster = self.master.cluster
        return [job for job in self.acknowledged if job in cluster.arrays.rows or job in cluster.jobs.rows]

    def _condition(self, options: dict[str, OptionValue]) -> str:
        random = self.time.random
        live = self._live()
        if not live:
            return ""
        job = random.choice(live)
        indices = self.acknowledged[job]
        if indices is not None and random.random() < 0.5:
            options["J"] = f"after[{indices.text()}]"
            return f"{random.choice(('done', 'ended'))}({job}[*])"
        first = f"{random.choice(('done', 'ended'))}({job})"
        if random.random() < 0.5:
            return first
        return f"{first} {random.choice(('&&', '||'))} ended({random.choice(live)})"

    def _control(self) -> None:
        random = self.time.random
        if random.random() < 0.4:
            return super()._control()
        job = random.choice(self._live() or list(self.acknowledged))
        for_jobs = (self._bmod, self._bmod, self._bswitch, self._btop, self._brun)
        for_all = (self._group, self._hosts, self._queues, self._reconfig, self._reserve)
        what: Callable[[str], None] = random.choice((*for_jobs, *for_all))
        what(str(job))
        return None

    def _say(self, text: str, decide: Callable[[Cluster, float], Decided]) -> None:
        self.time.tell(f"user: {text}")
        self._ask_until_answered(decide, lambda answer: None)

    def _bmod(self, job: str) -> None:
        random = self.time.random
        changes: tuple[dict[str, OptionValue], ...] = (
            {"n": str(random.choice((1, 2, 3)))},
            {"q": random.choice(self.queues)},
            {"wn": True},
            {"R": "rusage[lic=1]"},
            {"Rn": True},
            {"W": "7"},
            {"g": GROUP},
            {"Un": True},
            {"x": True},
            {"xn": True},
            {"w": self._condition({})},
        )
        options = random.choice(changes)
        if options.get("w") == "" or "[*]" in str(options.get("w")):
            return
        if options.get("q") in ("retry", "again"):
            self.watch.may_repeat.update(self._keys(int(job)))
        ask = asks.Modify(job=job, options=options)
        self._say(f"bmod {options} {job}", lambda c, now: modify.modify(c, ask, JobText(command="work"), ALICE, now, local(now)))

    def _bswitch(self, job: str) -> None:
        queue = self.time.random.choice(self.queues)
        if queue in ("retry", "again"):
            self.watch.may_repeat.update(self._keys(int(job)))
        ask = asks.Switch(queue=queue, jobs=Select(ids=[job]))
        self._say(f"bswitch {queue} {job}", lambda cluster, now: switch.switch(cluster, ask, ALICE, now))

    def _btop(self, job: str) -> None:
        ask = asks.Move(job=job, top=self.time.random.random() < 0.5, place=self.time.random.choice((1, 2, 5)))
        self._say(f"btop/bbot {ask}", lambda cluster, now: position.move(cluster, ask, ALICE, now))

    def _hosts(self, job: str) -> None:
        close = self.time.random.random() < 0.4
        ask = asks.Hosts(
            hosts=[self.time.random.choice(self.names)], close=close, migrate=close and self.time.random.random() < 0.5
        )
        self._switch_host(ask)

    def _switch_host(self, ask: asks.Hosts) -> None:
        self._say(f"{ask}", lambda cluster, now: hosts.switch_hosts(cluster, ask, ALICE, now))

    def _queues(self, job: str) -> None:
        self._switch_queue(self.time.random.choice(("qopen", "qclose", "qact", "qact", "qinact")))

    def _switch_queue(self, what: str) -> None:
        ask = asks.Queues(what=what, queues=[self.queues[0]])
        self._say(f"{ask}", lambda cluster, now: queues.switch_queues(cluster, ask, ALICE, now, local(now)))

    def _reconfig(self, job: str) -> None:
        self.conf = self._changed()
        self._say("badmin reconfig", lambda cluster, now: office.configure(cluster, now, self.conf))

    def _brun(self, job: str) -> None:
        random = self.time.random
        ask = asks.Run(job=job, hosts=random.sample(self.names, 2), force=random.random() < 0.5)
        uid = f"{BRUN}{random.getrandbits(64):x}"
        self._say(f"brun {ask}", lambda cluster, now: force.force(cluster, ask, ALICE, now, uid))

    def _group(self, job: str) -> None:
        self._limit_group(self.time.random.choice((None, 1, 2, 3)))

    def _limit_group(self, limit: int | None) -> None:
        ask = asks.ChangeGroup(group=GROUP, limit=limit)
        self._say(f"bgmod {ask.limit}", lambda cluster, now: groups.change_group(cluster, ask, ALICE, now))

    def _reserve(self, job: str) -> None:
        random = self.time.random
        if random.random() < 0.3 and (names := list(self.master.cluster.reservations.rows)):
            drop = asks.DropReservation(name=random.choice(names), force=random.random() < 0.5)
            return self._say(f"brsvdel {drop}", lambda cluster, now: reservations.drop(cluster, drop, ALICE, now))
        begin, end = (local(self.time.now + seconds).strftime("%Y:%m:%d:%H:%M") for seconds in (random.choice((60, 300)), 1500))
        ask = asks.AddReservation(
            slots=random.choice((1, 2, 4)),
            hosts=random.choice(self.names),
            users="alice",
            begin=begin,
            end=end,
            open=random.random() < 0.5,
        )
        self._say(f"brsvadd {ask}", lambda cluster, now: reservations.add(cluster, ask, ALICE, now, local(now)))

    # -- the end -------------------------------------------------------------------------------------------------------

    def _let_go(self) -> None:
        """All is as it was, and what still waits a long time later is killed: what it waits for may never come."""
        super()._let_go()
        cluster = self.master.cluster
        if cluster.conf != self.base or self.conf != self.base:
            self.conf = self.base
            self._say("badmin reconfig", lambda cluster, now: office.configure(cluster, now, self.base))
        for name, row in cluster.hosts.rows.items():
            if row.closed:
                self._switch_host(asks.Hosts(hosts=[name], close=False))
        for what in ("qopen", "qact"):
            state = cluster.queue_state(self.queues[0])
            if not (state.open and state.active):
                self._switch_queue(what)
        if cluster.groups.rows.get(GROUP) is not None and cluster.groups.rows[GROUP].limit is not None:
            self._limit_group(None)
        if self.time.now - 1_000_000.0 > self.faulty + CALM_AT_FIRST:
            self._end_hopeless()

    def _end_hopeless(self) -> None:
        cluster = self.master.cluster
        rows: list[Any] = [*cluster.jobs.rows.values(), *cluster.arrays.rows.values()]
        for row in rows:
            spec = cluster.specs.rows[row.spec]
            job = job_of(row.key) if isinstance(row, Job) else row.job
            if row.depend is not None or spec.reservation:
                self._kill(job)

    def _kill(self, job: int) -> None:
        self.killed.update(self._keys(job))
        ask = asks.Kill(jobs=Select(ids=[str(job)]))
        self._say(f"bkill {job}", lambda cluster, now: control.kill(cluster, ask, ALICE, now))

    def _check_outcome(self, event: ev.JobFinished) -> None:
        if event.reason not in (TermReason.TERM_ORPHAN_SYSTEM, TermReason.TERM_DEADLINE):
            super()._check_outcome(event)

"""A site in virtual time under faults with all that decides who goes first and where: several users, shares, guaranteed pools,
goals, time windows, load, GPUs that are closed, and jobs in chunks.
"""

from __future__ import annotations

from msgspec.structs import replace

from config.model.guarantees import Amount, Goal, Loan, Pool, ServiceClass
from config.model.queue import QueueConfig
from config.model.values import FairShare, Thresholds
from lavad.core import events as ev
from lavad.core.decide.control import gpus
from lavad.core.lang import asks
from lavad.core.lang.asks import Caller, OptionValue
from lavad.core.lang.ids import job_of
from lavad.core.lang.windows import Local, is_open, local_of, parse_windows
from lavad.core.site.conf import Conf
from lavad.core.site.host import Facts
from tests.sim.agents import Host
from tests.sim.checks import check_gpus
from tests.sim.net import Stream
from tests.sim.simulation import ALICE
from tests.sim.site.gpu_cards import CARD, cards_of
from tests.sim.site.site import SiteSimulation
from tests.sim.site.site_master import SiteMaster, local

USERS = (ALICE, Caller(user="bob", uid=1001, host="h0"), Caller(user="carol", uid=1002, host="h0"))
RUN_WINDOW = "13:48-13:52 13:55-14:00 14:06-23:59"
"""A simulation begins at 13:46:40, and is calm from about 14:07 on."""
DISPATCH_WINDOW = "13:47-13:49 13:53-14:02 14:06-23:59"
BUSY = 5.0
"""A load at which queues suspend jobs."""


class PolicyHost(Host):
    """With two GPUs, and the load that other work makes."""

    load = 0.0

    @property
    def facts(self) -> Facts:
        return replace(super().facts, gpus=cards_of(self.name))


class PolicyMaster(SiteMaster):
    """Hears of load, and lives by the clock on the wall."""

    def beat(self, host: Host, stream: Stream, sent: float) -> None:
        super().beat(host, stream, sent)
        if isinstance(host, PolicyHost) and host.name in self.soft.load:
            self.soft.load[host.name] = {**self.soft.load[host.name], "r1m": host.load}

    def local(self) -> Local:
        return local_of(local(self.time.now))

    def _why_not(self, event: ev.JobDispatched, events: list[ev.Event]) -> str:
        cluster = self.cluster
        row = cluster.jobs.rows.get(event.key) or cluster.arrays.rows[job_of(event.key)]
        queue = cluster.queue_conf[cluster.specs.rows[row.spec].queue]
        moments = [local_of(local(self.time.now - ago)) for ago in (0.0, 1.0)]  # the plan may be of a moment ago
        for window in (queue.run_window, queue.dispatch_window):
            if window and not any(is_open(parse_windows(window), moment) for moment in moments):
                return f"{window} of queue {queue.name} is closed"
        for part in event.parts:
            if closed := {one.uuid for one in cluster.hosts.rows[part.host].closed_gpus}.intersection(part.gpus):
                return f"{closed} are closed"
        return super()._why_not(event, events)

    def _check_room(self, started: list[ev.JobDispatched], by_hand: set[int], amended: set[int]) -> None:
        super()._check_room(started, by_hand, amended)
        check_gpus(self.cluster, CARD)


class PolicySimulation(SiteSimulation):
    """As ``SiteSimulation``, with all that is told above."""

    def __init__(self, seed: int, master: type[PolicyMaster] = PolicyMaster) -> None:
        super().__init__(seed, master, host=PolicyHost, chunk=4 if seed % 4 == 0 else 0)

    def _site(self, conf: Conf) -> Conf:
        conf = super()._site(conf)
        random = self.time.random
        more = (
            QueueConfig(name="late", priority=30, run_window=RUN_WINDOW, exclusive=True),
            QueueConfig(name="early", priority=30, dispatch_window=DISPATCH_WINDOW, exclusive=True),
            QueueConfig(
                name="calm", priority=28, thresholds=Thresholds(sched=(("r1m", 1.0),), stop=(("r1m", 4.0),)), exclusive=True
            ),
            QueueConfig(name="fair", priority=30, share=FairShare(shares=(("alice", 1), ("others", 3))), exclusive=True),
        )
        self.queues += [queue.name for queue in more]
        goals = (ServiceClass(name="steady", goals=(Goal("velocity", 2),), priority=5),) if random.random() < 0.7 else ()
        kind = random.choice(("slots", "hosts"))
        shares = (("gold", Amount(3 if kind == "slots" else 1)), ("silver", Amount(1)))
        pool = Pool(name="pool", type=kind, distribution=shares, loan=Loan(queues=("fill", "fair")))
        return replace(
            conf,
            queues=conf.queues + more,
            service_classes=(ServiceClass(name="gold"), ServiceClass(name="silver"), *goals),
            pools=(pool,) if random.random() < 0.6 else (),
        )

    # -- users ---------------------------------------------------------------------------------------------------------

    def _caller(self) -> Caller:
        return self.time.random.choice(USERS)

    def _options(self) -> dict[str, OptionValue]:
        random = self.time.random
        options = super()._options()
        one = random.random()
        if one < 0.25 and "ar" not in options:
            options["gpu"] = random.choice(("num=1", "num=1:j_exclusive=yes", "num=2", "num=2:j_exclusive=yes"))
        elif one < 0.45:
            options["sla"] = random.choice([one.name for one in self.base.service_classes])
        return options

    def _control(self) -> None:
        random = self.time.random
        if random.random() < 0.75:
            return super()._control()
        host = self.hosts[random.choice(self.names)]
        if random.random() < 0.5:
            self._switch_gpu(f"{host.name}:{random.choice((0, 1))}", random.random() < 0.5)
        elif isinstance(host, PolicyHost):
            host.load = random.choice((0.0, 2.0, BUSY))
            self.time.tell(f"{host.name}: load {host.load}")
        return None

    def _switch_gpu(self, name: str, close: bool) -> None:
        ask = asks.Gpus(gpus=[name], close=close)
        self._say(f"{ask}", lambda cluster, now: gpus.switch_gpus(cluster, ask, ALICE, now))

    def _let_go(self) -> None:
        super()._let_go()
        for name, host in self.hosts.items():
            if isinstance(host, PolicyHost):
                host.load = 0.0
            row = self.master.cluster.hosts.rows.get(name)
            for gpu in row.closed_gpus if row is not None else ():
                self._switch_gpu(f"{name}:{gpu.uuid}", close=False)

"""A site in virtual time under faults with all that jobs may ask of hosts: memory, single CPUs, GPUs of each task, terms, units;
limits on hosts, slots taken one by one or lent, and hosts that come back with less than they had.
"""

from __future__ import annotations

from msgspec.structs import replace

from config.model.cluster import HostConfig, Limit
from config.model.queue import QueueConfig
from config.model.values import Backfill, Limits
from lavad.core import events as ev
from lavad.core.lang.asks import OptionValue
from lavad.core.lang.cpus import taken_by
from lavad.core.lang.ids import show
from lavad.core.site.conf import Conf, ResourceConf, UnitConf
from lavad.core.site.host import Facts
from tests.sim.agents import Host
from tests.sim.checks import check_gpus, check_memory, require, running
from tests.sim.simulation import CALM, SLOTS
from tests.sim.site.gpu_cards import CARD, cards_of
from tests.sim.site.site import SiteSimulation
from tests.sim.site.site_master import SiteMaster
from tests.support.topologies import regular

MEM = 16_000
LESS_MEM = 8_000
RESREQS = (
    "rusage[mem=5000]",
    "rusage[mem=3000/task]",
    "rusage[mem=2000/host]",
    "rusage[mem=6000:duration=1m]",
    "span[ptile=2]",
    "span[hosts=1]",
    "same[color]",
    "cu[excl]",
    "cu[pref=maxavail]",
    "{span[hosts=1]} || {rusage[mem=3000/task]}",
    "1*{rusage[mem=100]}+{rusage[mem=500/task]}",
    "affinity[core(1)]",
    "affinity[thread(1)]",
    "order[-slots]",
)
GPUS = ("num=1/task", "num=1:j_exclusive=yes", "num=2", "num=1:gmem=30G")
LIMITS = (
    Limit(name="two", hosts=("h1", "h2"), slots=5),
    Limit(name="jobs", per_host=True, hosts=("all",), jobs=2),
    Limit(name="normal", queues=("normal",), slots=6),
    Limit(name="memory", mem=20_000.0, users=("alice",)),
    Limit(name="each", per_host=True, slots=3),
    Limit(name="mem", per_host=True, mem=9_000.0),
    Limit(name="some", hosts=("h0", "h2"), mem=8_000.0),
    Limit(name="one", hosts=("h0", "h1"), jobs=1, per_user=True),
)


class NeedsHost(Host):
    """With CPUs and two GPUs; after each second boot it has one of these, and less memory."""

    @property
    def facts(self) -> Facts:
        less = self.boots % 2 == 0
        cards = cards_of(self.name, 1 if less else 2)
        return replace(super().facts, gpus=cards, max_mem=LESS_MEM if less else MEM, topology=regular(1, 1, 2, 2))


class NeedsMaster(SiteMaster):
    """Counts memory, CPUs, GPUs and limits at each start."""

    def _check_room(self, started: list[ev.JobDispatched], by_hand: set[int], amended: set[int]) -> None:
        super()._check_room(started, by_hand, amended)
        cluster = self.cluster
        now = running(cluster)
        for host in {part.host for event in started for part in event.parts}:
            check_memory(cluster, host, by_hand | amended)
            cpus = [cpu for _, _, parts in now for part in parts if part.host == host for cpu in taken_by(part.binds)]
            require(len(set(cpus)) == len(cpus), f"{host}: CPUs {sorted(cpus)} are given twice")
        for event in started:
            for part in event.parts:
                known = {gpu.uuid for gpu in cluster.hosts.rows[part.host].facts.gpus}
                require(known.issuperset(part.gpus), f"job {show(event.key)} has {part.gpus} of {known}")
        check_gpus(cluster, CARD)


class NeedsSimulation(SiteSimulation):
    """As ``SiteSimulation``, with all that is told above."""

    def __init__(self, seed: int, master: type[NeedsMaster] = NeedsMaster) -> None:
        super().__init__(seed, master, jobs=80, host=NeedsHost)

    def _site(self, conf: Conf) -> Conf:
        conf = super()._site(conf)
        random = self.time.random
        more = (
            QueueConfig(name="parts", priority=30, gang=False, exclusive=True),
            QueueConfig(
                name="lazy", priority=5, backfill=True, interruptible_backfill=60, limits=Limits(run=3600), exclusive=True
            ),
        )
        self.queues += [queue.name for queue in more]
        hosts = tuple(
            HostConfig(name=name, slots=SLOTS, resources=(("color", "red"),) if at % 2 else ())
            for at, name in enumerate(self.names)
        )
        params = replace(
            conf.params,
            lava_backfill=random.choice((Backfill.EASY, Backfill.CONSERVATIVE)),
            compute_unit_types=("rack",),
            units=(UnitConf("r1", "rack"), UnitConf("r2", "rack")),
            parallel_sched_by_slot=random.random() < 0.5,
        )
        return replace(
            conf,
            params=params,
            queues=conf.queues + more,
            hosts=hosts,
            host_groups=(("r1", ("h0", "h1")), ("r2", ("h2", "h3"))),
            resources=(*conf.resources, ResourceConf(name="color", kind="string")),
            limits=(*conf.limits, *random.sample(LIMITS, 2)),
        )

    def _options(self) -> dict[str, OptionValue]:
        random = self.time.random
        options = super()._options()
        if "ar" in options:
            return options
        if random.random() < 0.6:
            options["R"] = random.choice(RESREQS)
        if random.random() < 0.2:
            options["gpu"] = random.choice(GPUS)
        return options

    def _end_hopeless(self) -> None:
        """Some ask for more than there is."""
        super()._end_hopeless()
        if self.time.now - 1_000_000.0 > self.faulty + CALM / 2:
            for job in self._live():
                if job not in self.killed:
                    self._kill(job)

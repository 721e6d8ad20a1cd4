"""A site in virtual time under faults whose jobs have roles, each asking for its own slots, GPUs and memory."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.lang.asks import OptionValue, Submit
from lavad.core.site.host import Facts
from tests.sim.checks import check_memory, require, running
from tests.sim.roles import RoleHost, RoleMaster, RoleSimulation
from tests.sim.site.gpu_cards import cards_of
from tests.sim.site.site import SiteSimulation
from tests.sim.site.site_master import GROUP, SiteMaster

MEM = 16_000
RESREQS = ("", "", "", "rusage[mem=3000]", "select[r1m<1.0]", "order[-slots]")


class RoleSiteHost(RoleHost):
    """With GPUs and memory."""

    @property
    def facts(self) -> Facts:
        return replace(super().facts, gpus=cards_of(self.name), max_mem=MEM)


class RoleSiteMaster(RoleMaster, SiteMaster):
    """Counts GPUs and memory at each start."""

    def _check_room(self, started: list[ev.JobDispatched], by_hand: set[int], amended: set[int]) -> None:
        super()._check_room(started, by_hand, amended)
        now = running(self.cluster)
        for host in {part.host for event in started for part in event.parts}:
            check_memory(self.cluster, host, by_hand | amended)
            cards = [gpu for _, _, parts in now for part in parts if part.host == host for gpu in part.gpus]
            require(len(set(cards)) == len(cards), f"{host}: {sorted(cards)} are given twice")
        for event in started:
            spec = self.cluster.specs.rows[self.cluster.jobs.rows[event.key].spec]
            for number, role in enumerate(spec.roles):
                tasks = sum(count for part in event.parts for at, _, count in part.roles if at == number)
                require(
                    role.least <= tasks <= role.count, f"{tasks} tasks of role {role.name} start of {role.least} to {role.count}"
                )
            for part in event.parts:
                roles = [(spec.roles[at], count) for at, _, count in part.roles]
                slots, gpus = (sum(getattr(role, what) * count for role, count in roles) for what in ("slots", "gpus"))
                require((part.slots, len(part.gpus)) == (slots, gpus), f"{part} is not what {roles} ask for")


class RoleSiteSimulation(RoleSimulation, SiteSimulation):
    """Users submit jobs with roles, and do with them whatever is done with other jobs."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, RoleSiteMaster, RoleSiteHost)

    def _needs(self) -> dict[str, Any]:
        random = self.time.random
        return {
            "least": random.choice((0, 0, 1)),
            "slots": random.choice((1, 1, 2)),
            "gpus": random.choice((0, 0, 1)),
            "resreq": random.choice(RESREQS),
            "spread": random.random() < 0.2,
        }

    def _roles(self) -> Submit:
        random = self.time.random
        ask = super()._roles()
        more: dict[str, OptionValue] = {"gpu": "num=1:j_exclusive=yes"} if any(role.gpus for role in ask.roles) else {}
        one = random.random()
        if one < 0.2 and (condition := self._condition({})):
            more["w"] = condition
        elif one < 0.3:
            more["g"] = GROUP
        elif one < 0.4 and (names := list(self.master.cluster.reservations.rows)):
            more["U"] = random.choice(names)
        if random.random() < 0.4:
            more["W"] = str(random.choice((1, 5, 20)))
        return replace(ask, options={**ask.options, **more})

    def _control(self) -> None:
        if self.time.random.random() < 0.5:
            RoleSimulation._control(self)
        else:
            SiteSimulation._control(self)

"""A site whose lsb.queues is a test's own text: jobs are submitted as bsub does, scheduled and ended in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from config.model.queue import QueueConfig
from config.read.load import load
from lavad.configure.resolve import resolve
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.job import End, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, OptionValue, Refused, Submit
from tests.support.worlds.world import World

LOCAL = datetime(2026, 11, 20, 12, 0)
PARAMS = "Begin Parameters\nDEFAULT_QUEUE = q\nMBD_SLEEP_TIME = 10\nMAX_USER_PRIORITY = 100\nEnd Parameters\n"
USERS = "Begin UserGroup\nGROUP_NAME GROUP_MEMBER\ndev (ann bob)\nEnd UserGroup\n"
HOSTS = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nrack (h2 h3)\nEnd HostGroup\n"
CLUSTER = "Begin ClusterAdmins\nAdministrators = boss\nEnd ClusterAdmins\nBegin Host\nHOSTNAME\nh1\nh2\nh3\nEnd Host\n"


class QueueSite(World):
    """Queue ``q`` has the lines of a test; ``others`` are more sections of lsb.queues. Hosts h1, h2 and h3 have 4 slots."""

    def __init__(self, folder: Path, lines: str, others: str = "", **files: str) -> None:
        text = f"Begin Queue\nQUEUE_NAME = q\n{lines}\nEnd Queue\n{others}"
        found = {
            "lsb__queues": text,
            "lsb__params": PARAMS,
            "lsb__users": USERS,
            "lsb__hosts": HOSTS,
            "lsf__cluster__lava": CLUSTER,
        } | files
        for name, content in found.items():
            (folder / name.replace("__", ".")).write_text(content)
        loaded = load(str(folder))
        self.problems = [problem.text for problem in loaded.problems]
        super().__init__()
        self.configure(resolve(loaded.config))
        self.hosts("h1", "h2", "h3")

    @property
    def queue(self) -> QueueConfig:
        return self.cluster.queue_conf["q"]

    def bsub(self, user: str = "ann", **options: OptionValue) -> int:
        """The job id. Raises Refused."""
        ask = Submit(command="sleep 1", options={name.rstrip("_"): value for name, value in options.items()})
        decided = submit(self.cluster, Given(ask, Caller(user=user, uid=1000, host="h1"), self.now, LOCAL))
        self.apply(*decided.events)
        self.text: JobText = decided.texts[0][1]
        return int(decided.answer["job"])

    def refused(self, **options: Any) -> str:
        """Why a submission is refused; "" for one that is taken."""
        try:
            self.bsub(**options)
        except Refused as why:
            return str(why)
        return ""

    def spec_of(self, **options: Any) -> Spec:
        """The record of a job that is submitted with these options."""
        return self.cluster.spec_of(self.bsub(**options))

    def started(self, *jobs: Mapping[str, Any]) -> list[int]:
        """Which of these submissions start at once."""
        keys = [self.bsub(**options) for options in jobs]
        begun = self.turn()
        return [at for at, key in enumerate(keys) if key in begun]

    def turn(self, seconds: float = 0.0, runs: bool = True) -> list[int]:
        """So much later one cycle, accepted; the jobs that were dispatched, in their order, and run (unless not ``runs``)."""
        self.later(seconds)
        plan = self.schedule()
        self.accept(plan)
        self.soft.why.update(plan.why)
        check_invariants(self.cluster)
        begun = [placed.key for placed in plan.placements]
        for key in begun if runs else ():
            run = self.job(key).run
            assert run is not None
            for part in run.parts if len(run.parts) > 1 else ():
                self.hear("prepared", key, run.uid, part.host, f"{part.host}:1")
            for part in run.parts:
                self.hear("started", key, run.uid, part.host, 77, self.now, "/")
        return begun

    def job(self, key: int) -> Job:
        return self.cluster.jobs.rows[key]

    def state(self, key: int) -> str:
        return (self.cluster.jobs.rows.get(key) or self.cluster.finished[key]).state.name

    def hosts_of(self, key: int) -> dict[str, int]:
        return self.running()[key]

    def ends(self, key: int, status: int = 0) -> None:
        """The job's process ends with this exit code, on its one host."""
        run = self.job(key).run
        assert run is not None
        end = End(status=status << 8, at=self.now)
        self.hear("ended", key, run.uid, run.parts[0].host, end, True)

    def fails(self, key: int, code: str) -> None:
        """Its one host refuses to start it."""
        run = self.job(key).run
        assert run is not None
        self.hear("refused", key, run.uid, run.parts[0].host, code, "exit code 1")

"""A small cluster for tests of queries, grown event by event: three hosts, five queues, two users."""

from __future__ import annotations

import calendar
from typing import Any

from config.model.cluster import HostConfig, UserConfig
from config.model.queue import QueueConfig
from config.model.values import Limits, Thresholds
from lavad.core import events as ev
from lavad.core.job.depend import Depend
from lavad.core.job.job import End, Placed
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, Query
from lavad.core.lang.ids import key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.core.plan.volatile import Soft
from lavad.core.site.conf import Conf, Params, ResourceConf
from lavad.core.site.host import Facts, Gpu
from lavad.queries.frame.view import View
from lavad.queries.render import render
from tests.support.stores.memory_reader import MemoryReader

ALICE = Caller(user="alice", uid=1001, host="ol1")
BOB = Caller(user="bob", uid=1002, host="ol1")
ADMIN = Caller(user="openlava", uid=500, host="ol1")
SCRATCH = ResourceConf("scratch", "numeric", increasing=False, interval=30, description="Scratch space in GB")
LIC = ResourceConf(
    "lic",
    "numeric",
    increasing=False,
    consumable=True,
    description="Floating licences",
    locations=((4.0, ("ol1", "ol2", "ol3")),),
)


def at(clock: str) -> float:
    """``11:33:50`` of 20 November 2026, UTC."""
    hours, minutes, seconds = map(int, clock.split(":"))
    return float(calendar.timegm((2026, 11, 20, hours, minutes, seconds)))


def conf(**params: Any) -> Conf:
    """The configuration of the captured cluster."""
    sched = Thresholds(sched=(("r1m", 10.0),), stop=(("r1m", 20.0),))
    model: dict[str, Any] = {"type": "linux", "model": "IntelI5"}
    return Conf(
        cluster="openlava",
        admins=("openlava",),
        params=Params(**params),
        queues=(
            QueueConfig(
                name="priority",
                description="Jobs that cannot wait.",
                priority=43,
                ujob_limit=2,
                pjob_limit=1.0,
                hjob_limit=4,
                users=("bob",),
                hosts=("hgA",),
                thresholds=sched,
            ),
            QueueConfig("chkpnt", priority=40),
            QueueConfig("fair", priority=35),
            QueueConfig("normal", priority=30),
            QueueConfig("night", "Night queue.", priority=20, qjob_limit=4, run_window="2:00-2:05"),
        ),
        hosts=(
            HostConfig("ol1", 4, resources=(("cs", ""),), **model),
            HostConfig("ol2", 8, resources=(("cs", ""), ("fs", "")), **model),
            HostConfig("ol3", None, resources=(("bigmem", ""),), **model),
        ),
        host_groups=(("hgA", ("ol1", "ol2")), ("hgAll", ("all",))),
        user_groups=(("ugA", ("bob", "alice")), ("ugB", ("bob",))),
        users=(UserConfig("alice", 20), UserConfig("bob", 20), UserConfig("default", 100)),
        resources=(
            SCRATCH,
            *(
                ResourceConf(name, description=words)
                for name, words in (
                    ("fs", "File server"),
                    ("cs", "Compute server"),
                    ("bigmem", "Large memory host"),
                )
            ),
            LIC,
        ),
        models=(("IntelI5", 100.0),),
    )


class QueryCluster:
    """Feeds events and renders queries."""

    def __init__(self, with_gpus: bool = False, **params: Any) -> None:
        self.store = MemoryReader()
        self.soft = Soft()
        self.lsf: dict[str, str] = {}
        self.now = at("11:40:00")
        self.specs: dict[Spec, int] = {}
        self.feed(ev.MasterStarted(at=at("11:31:35"), epoch=1, incarnation="i", host="ol1"))
        self.feed(ev.Configured(at=at("11:31:35"), conf=conf(**params)))
        both = (Gpu("GPU-a", 0, "H200", 143771), Gpu("GPU-b", 1, "H200", 143771))
        for name in ("ol1", "ol2", "ol3"):
            gpus = both if name == "ol2" and with_gpus else ()
            facts = Facts(ncpus=2, max_mem=24105, max_swap=0, max_tmp=258019, type="linux", model="IntelI5", gpus=gpus)
            self.feed(ev.HostJoined(at=at("11:31:36"), host=name, facts=facts), ev.HostUp(at=at("11:31:36"), host=name))
            self.soft.load[name] = {
                "r15s": 0.5,
                "r1m": 1.4,
                "r15m": 2.1,
                "ut": 0.64,
                "pg": 0.0,
                "io": 0.0,
                "ls": 0.0,
                "it": 2e8,
                "tmp": 73000.0,
                "swp": 0.0,
                "mem": 23500.0,
                "scratch": 100.0,
            }

    @property
    def cluster(self) -> Any:
        return self.store.cluster

    def feed(self, *events: ev.Event) -> None:
        self.store.feed(*events)

    def submit(
        self,
        job: int,
        clock: str = "11:33:50",
        name: str = "",
        command: str = "sleep 1",
        held: bool = False,
        indices: str = "",
        limit: int = 0,
        text: dict[str, Any] | None = None,
        dependency: str = "",
        parents: tuple[int, ...] = (),
        **spec: Any,
    ) -> int:
        """bsub; gives the key."""
        if isinstance(spec.get("limits"), dict):
            spec["limits"] = Limits(**spec["limits"])
        value = Spec(**{"user": "alice", "queue": "normal", "from_host": "ol1"} | spec)
        number = self.specs.get(value)
        if number is None or number not in self.cluster.specs.rows:
            number = self.specs[value] = self.cluster.next_spec
            self.feed(ev.SpecAdded(at=at(clock), spec=number, value=value))
        ranges = Ranges.parse(indices) if indices else None
        spec_text = f"{name}[{indices}]" + (f"%{limit}" if limit else "") if indices else ""
        self.store.kept_texts[job] = JobText(
            **{"command": command, "cwd": "/home/alice", "home": "/home/alice", "array_spec": spec_text} | (text or {})
        )
        self.feed(
            ev.JobSubmitted(
                at=at(clock),
                key=job,
                spec=number,
                name=name or command,
                held=held,
                indices=ranges,
                limit=limit,
                spec_text=spec_text,
                by=value.user,
                depend=Depend(text=dependency, ids=tuple((job,) for job in parents) or ((),)) if dependency else None,
            )
        )
        return job

    def start(self, key: int, clock: str = "11:33:55", hosts: str = "ol2", pid: int = 16605, **placed: Any) -> None:
        """Dispatch to ``ol2:2 ol1`` and start."""
        parts = []
        for word in hosts.split():
            host, _, slots = word.partition(":")
            parts.append(Placed(host, int(slots or 1), **placed))
        attempt = 1
        row = self.cluster.jobs.rows.get(key)
        if row is not None:
            attempt = row.attempt + 1
        self.feed(ev.JobDispatched(at=at(clock), key=key, attempt=attempt, uid=f"u{key}", parts=tuple(parts)))
        for part in parts:
            self.feed(
                ev.PartStarted(
                    at=at(clock), key=key, attempt=attempt, host=part.host, pid=pid, started=at(clock), cwd="/home/alice"
                )
            )

    def finish(
        self,
        key: int,
        clock: str = "11:33:56",
        status: int = 0,
        reason: TermReason = TermReason.NONE,
        why: str = "",
        by: str = "",
        **end: Any,
    ) -> None:
        """It ends, on every host."""
        row = self.cluster.jobs.rows.get(key)
        state = JobState.EXIT if status or reason else JobState.DONE
        if row is not None and row.run is not None:
            for part in row.run.parts:
                ended = End(status=status, at=at(clock), **{"utime": 0.01, "stime": 0.01, "max_mem": 6144} | end)
                self.feed(ev.PartEnded(at=at(clock), key=key, attempt=row.attempt, host=part.host, end=ended))
                self.feed(ev.PartGone(at=at(clock), key=key, attempt=row.attempt, host=part.host))
        self.feed(ev.JobFinished(at=at(clock), key=key, state=state, status=status, reason=reason, why=why, by=by))

    def view(self) -> View:
        return View(self.cluster, self.soft, lambda: self.store, master="ol1", lsf=self.lsf)

    def ask(self, command: str, *words: str, caller: Caller = ALICE, **options: Any) -> tuple[str, str, int]:
        """stdout, stderr and exit status of a query."""
        return self.query(Query(command=command, options=options, words=list(words)), caller)

    def query(self, query: Query, caller: Caller = ALICE) -> tuple[str, str, int]:
        out, err, status = "", "", -1
        for kind, text in render(self.view(), query, caller, self.now):
            assert status == -1, "something came after the exit status"
            if kind == "out":
                out += text
            elif kind == "err":
                err += text
            else:
                status = int(text)
        return out, err, status


def element(job: int, index: int) -> int:
    """The key of an element."""
    return key_of(job, index)

"""A whole cluster under seeded faults: hosts, masters one after the other, users who ask and ask again, and what must hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain
from typing import Any

from config.model.cluster import HostConfig
from config.model.queue import QueueConfig
from config.model.values import JobAction, JobControl, Preemption
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.invariants import check_invariants
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control import control, resize
from lavad.core.decide.submit import submit
from lavad.core.lang.asks import Caller, Kill, Migrate, OptionValue, Refused, Requeue, Resize, Resume, Select, Stop, Submit
from lavad.core.lang.ids import index_of, job_of, key_of, show
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import JobState, TermReason
from lavad.core.site.conf import Conf, Params
from proto.answers import Answer
from tests.sim.agents import Host
from tests.sim.master import Disk, Master
from tests.sim.timeline import Timeline
from tests.sim.watch import Broken, Watch

ALICE = Caller(user="alice", uid=1000, host="h0")
LOCAL = datetime(2026, 11, 20, 12)
SLOTS = 4
CALM = 30_000.0
"""Seconds without faults in which everything must come to its end."""
RETRY = 5.0
FAULTS = ("cut", "cut", "agent", "boot", "net", "master", "commit", "before", "after", "trouble")
"""Of one host: stream, agent, power, network, starts; of the master: its process, a commit, and itself in a commit."""


class Simulation:
    """``run`` lives through ``faulty`` seconds of faults and then to the end of every job; raises ``Broken``."""

    away: tuple[float, ...] = (0.5, 5.0, 40.0, 90.0, 500.0, 900.0)
    """Seconds for which a host, a network or a master is gone."""
    users_pause = 60.0
    """The longest between two requests of users."""

    def __init__(
        self,
        seed: int,
        hosts: int = 3,
        jobs: int = 14,
        faulty: float = 1500.0,
        master: type[Master] = Master,
        host: type[Host] = Host,
        force: bool = True,
        faults: Sequence[str] = FAULTS,
        pause: float = 90.0,
        elastic: float = 0.3,
        chunk: int = 0,
        preempts: bool = False,
    ) -> None:
        """``chunk``: CHUNK_JOB_SIZE of its queues; then most jobs are arrays of one slot an element. ``preempts``: a third queue
        takes slots of jobs of the others, which it suspends or has run again."""
        self.seed = seed
        self.time = Timeline(seed)
        self.names = [f"h{at}" for at in range(hosts)]
        self.watch = Watch(self.time, {} if preempts else dict.fromkeys(self.names, SLOTS))
        self.faulty = faulty
        self.force = force
        self.faults, self.pause = faults, pause
        self.left_to_submit = jobs
        self.elastic = elastic
        self.chunk = chunk
        self._master_type = master
        params = Params(lava_host_timeout=60, lava_lease=120, lava_lease_margin=30, lsf_root_user=True)
        again = (JobControl(JobAction.SUSPEND, "brequeue"),) if preempts else ()
        queues = [
            QueueConfig(name="normal", priority=30, chunk_job_size=chunk or None),
            QueueConfig(name="again", priority=20, rerunnable=True, chunk_job_size=chunk or None, job_controls=again),
        ]
        if preempts:
            takes = Preemption(preemptive=True, preempts=(("normal", None), ("again", None)))
            queues.append(QueueConfig(name="urgent", priority=60, preemption=takes))
        self.queues = [queue.name for queue in queues]
        sized = tuple(HostConfig(name=name, slots=SLOTS) for name in self.names)
        self.conf = Conf(params=params, queues=tuple(queues), hosts=sized)
        self.disk = Disk()
        self.hosts = {name: host(name, SLOTS, self.time, self.watch, self._task) for name in self.names}
        self.acknowledged: dict[int, Ranges | None] = {}
        self.submissions = 0
        self.killed: set[int] = set()
        self.master = self._new_master()
        for one in self.hosts.values():
            self.time.after(0.0, one.connect)
            self.time.after(1.0, one.beat)
        self.time.after(5.0, self._client)
        self.time.after(20.0, self._fault)
        self.over = False

    # -- the world -----------------------------------------------------------------------------------------------------

    def _task(self, key: int) -> tuple[float, int]:
        """How long and with what wait status a job's process runs; the same at each attempt."""
        number = job_of(key) * 31 + index_of(key) * 7
        length = (0.05, 3.0, 40.0, 150.0, 400.0)[number % 5]
        return length, (0, 0, 256, 0, 768)[number // 5 % 5]

    def _new_master(self) -> Master:
        master = self._master_type(self.time, self.disk, self.conf, self.hosts)
        for host in self.hosts.values():
            host.upstream = master
        self.time.tell(f"master {self.disk.epoch} takes over")
        return master

    def _replace_master(self, after: float) -> None:
        def begin() -> None:
            if not self.master.alive:
                self.master = self._new_master()

        self.time.after(after, begin)

    # -- users ---------------------------------------------------------------------------------------------------------

    def _client(self) -> None:
        random = self.time.random
        if self.time.now - 1_000_000.0 > self.faulty:
            self.left_to_submit = min(self.left_to_submit, 0)
            return
        if self.left_to_submit > 0 and random.random() < 0.5:
            self.left_to_submit -= 1
            self._submit()
        elif self.acknowledged:
            self._control()
        self.time.after(random.uniform(1.0, self.users_pause), self._client)

    def _options(self) -> dict[str, OptionValue]:
        random = self.time.random
        options: dict[str, OptionValue] = {"J": "job"}
        if random.random() < 0.4:
            options["r"] = True
        others = self.queues[1:]
        if random.random() < 0.2 * len(others):
            options["q"] = random.choice(others) if len(others) > 1 else others[0]
        if random.random() < (0.05 if self.chunk else 0.3):
            options["n"] = str(random.choice((2, 6, 8)))
        if random.random() < (0.6 if self.chunk else 0.25):
            many, limit = (30, "%9") if self.chunk else (5, "%2")
            options["J"] = f"arr[1-{random.randint(2, many)}]" + random.choice(("", limit))
        if random.random() < 0.1:
            options["H"] = True
        if random.random() < 0.1:
            options["k"] = "/ckpt"
        return options | self._elastic()

    def _elastic(self) -> dict[str, OptionValue]:
        """Some jobs grow and shrink, by whole hosts."""
        random = self.time.random
        if random.random() >= self.elastic:
            return {}
        options: dict[str, OptionValue] = {"ar": True, "a": "torchrun", "n": random.choice(("1,12", "2,8", "5,12"))}
        if random.random() < 0.4:
            options["rnc"] = "/bin/told"
        return options

    def _caller(self) -> Caller:
        """Who submits the next job."""
        return ALICE

    def _submit(self) -> None:
        options, caller = self._options(), self._caller()
        self.submissions += 1
        ask = Submit(command="work", options=options)

        def decide(cluster: Cluster, now: float) -> Decided:
            return submit.submit(cluster, submit.Given(ask, caller, now, LOCAL))

        def answered(answer: Answer) -> None:
            job = int(answer["job"])
            if job in self.acknowledged:
                raise Broken(f"job id {job} was given out twice")
            array = self.master.cluster.arrays.rows.get(job)
            self.acknowledged[job] = self._indices(job)
            if array is not None and self.acknowledged[job] != array.indices:
                raise Broken(f"array {job} has other indices than its submission")
            self.time.tell(f"{caller.user}: job {job} is submitted {options}")

        self._ask_until_answered(decide, answered)

    def _indices(self, job: int) -> Ranges | None:
        submitted = (event for event in self.disk.events if isinstance(event, ev.JobSubmitted) and event.key == job)
        return next((event.indices for event in submitted), None)

    def _keys(self, job: int) -> list[int]:
        indices = self.acknowledged[job]
        return [job] if indices is None else [key_of(job, index) for index in indices]

    def _control(self) -> None:
        random = self.time.random
        job = random.choice(list(self.acknowledged))
        indices = self.acknowledged[job]
        text = str(job)
        if indices is not None and random.random() < 0.5:
            text = f"{job}[{random.choice(list(indices))}]"
        jobs = Select(ids=[text])
        asked = ["kill", "stop", "resume", "resume", "requeue", "migrate", "force", "release", "grow"]
        what = random.choice(asked if self.elastic < 1.0 else [*asked[2:4], *asked[7:] * 4])
        decide: Callable[[Cluster, Any, Caller, float], Decided]
        ask: Any
        if what == "kill":
            decide, ask = control.kill, Kill(jobs=jobs)
        elif what == "stop":
            decide, ask = control.stop, Stop(jobs=jobs)
        elif what == "resume":
            decide, ask = control.resume, Resume(jobs=jobs)
        elif what == "requeue":
            decide, ask = control.requeue, Requeue(jobs=jobs)
        elif what == "migrate":
            decide, ask = control.migrate, Migrate(jobs=jobs)
        elif what in ("release", "grow"):
            self._resize(text, "release" if what == "release" else "request")
            return
        elif self.force and random.random() < 0.3:
            decide, ask = control.kill, Kill(jobs=jobs, now=True)
        else:
            return
        keys = self._keys(job)
        if what == "requeue":
            self.watch.may_repeat.update(keys)
        if what == "force":
            self.watch.forced.update(keys)
        if what in ("kill", "force"):
            self.killed.update(keys)
        self.time.tell(f"user: {what} {text}")
        self._ask_until_answered(lambda cluster, now: decide(cluster, ask, ALICE, now), lambda answer: None)

    def _resize(self, text: str, what: str) -> None:
        ask = Resize(job=text, what=what, hosts="all", least=1, most=4, cancel=True)
        self.time.tell(f"user: bresize {what} {text}")
        self._ask_until_answered(lambda cluster, now: resize.resize(cluster, ask, ALICE, now), lambda answer: None)

    def _ask_until_answered(self, decide: Any, answered: Callable[[Answer], None]) -> None:
        """A caller asks again with the same uuid until there is an answer; a full store is asked again too."""
        uuid = f"u{self.time.random.getrandbits(64):x}"
        done = False

        def got(answer: Answer | None, why: str) -> None:
            nonlocal done
            if answer is not None and not done:
                done = True
                answered(answer)
            elif answer is None and "full" not in why:
                done = True

        def ask() -> None:
            if not done:
                if self.master.alive:
                    self.master.ask(decide, uuid, got)
                self.time.after(RETRY, ask)

        ask()

    # -- faults --------------------------------------------------------------------------------------------------------

    def _fault(self) -> None:
        random = self.time.random
        if self.time.now - 1_000_000.0 > self.faulty:
            for host in self.hosts.values():
                host.trouble = 0.0
            return
        host = self.hosts[random.choice(self.names)]
        away = random.choice(self.away)
        what = random.choice(self.faults)
        if what == "cut" and host.stream is not None:
            self.time.tell(f"{host.name}: its stream breaks")
            host.stream.cut()
        elif what == "agent" and host.up and host.agent_up:
            host.crash_agent(away)
        elif what == "boot" and host.up:
            host.boot(away)
        elif what == "net" and not host.partitioned:
            host.part_from_net(away)
        elif what == "trouble":
            host.trouble = random.choice((0.0, 0.5, 1.0))
        elif self.master.alive:
            self._master_fault(what, away)
        self.time.after(random.uniform(1.0, self.pause), self._fault)

    def _master_fault(self, what: str, away: float) -> None:
        self.time.tell(f"master: {what} ({away:.0f} s)")
        if what == "master":
            self.master.crash()
            self._replace_master(away)
        elif what == "commit":
            self.master.fail_next = True
        elif what in ("before", "after"):
            self.master.crash_in_commit = what
            self._mind_crash(away)

    def _mind_crash(self, away: float) -> None:
        if self.master.alive:
            self.time.after(1.0, lambda: self._mind_crash(away))
        else:
            self._replace_master(away)

    # -- what must hold ------------------------------------------------------------------------------------------------

    def run(self) -> Simulation:
        """Live through it; the text of a failure has the seed and the newest part of the story."""
        try:
            self.time.after(10.0, self._look)
            self.time.run(1_000_000.0 + self.faulty + CALM, lambda: self.over)
            self._check_end()
        except Exception as failure:
            kind = "" if isinstance(failure, (AssertionError, Refused)) else f"{type(failure).__name__}: "
            story = "\n".join(self.time.story)
            raise Broken(f"seed {self.seed}: {kind}{failure}\n{story}") from failure
        return self

    def _look(self) -> None:
        cluster = self.master.cluster
        finished = self._finished()
        for key in chain.from_iterable(map(self._keys, self.acknowledged)):
            self._check_known(cluster, key, finished)
        calm = self.time.now - 1_000_000.0 > self.faulty
        if calm:
            self._let_go()
        self.over = calm and not cluster.jobs.rows and not cluster.arrays.rows and self.master.is_settled and not self.watch.live
        self.time.after(10.0, self._look)

    def _check_known(self, cluster: Cluster, key: int, finished: Counter[int]) -> None:
        array = cluster.arrays.rows.get(job_of(key)) if index_of(key) else None
        waits = array is not None and (index_of(key) in array.pending or index_of(key) in array.held)
        live = key in cluster.jobs.rows or waits
        if self.master.is_settled and not live and not finished[key]:
            raise Broken(f"job {show(key)} was acknowledged and is lost")

    def _let_go(self) -> None:
        """Users resume what they stopped, so that all can end."""
        for key, job in list(self.master.cluster.jobs.rows.items()):
            if job.state in (JobState.PSUSP, JobState.USUSP):
                self._resume(show(key))
        for array in list(self.master.cluster.arrays.rows.values()):
            if array.held:
                self._resume(str(array.job))

    def _resume(self, text: str) -> None:
        ask = Resume(jobs=Select(ids=[text]))
        self._ask_until_answered(lambda cluster, now: control.resume(cluster, ask, ALICE, now), lambda answer: None)

    def _finished(self) -> Counter[int]:
        """Key to how often it finished, by what is on the disk."""
        times: Counter[int] = Counter()
        for event in self.disk.events:
            if isinstance(event, ev.JobFinished):
                times[event.key] += 1
            elif isinstance(event, ev.ElementsKilled):
                times.update(key_of(event.key, index) for index in event.elements)
        return times

    def _check_end(self) -> None:
        cluster = self.master.cluster
        check_invariants(cluster)
        if not self.over:
            left = [f"{show(job.key)} {job.state.name} {job.run}" for job in cluster.jobs.rows.values()]
            raise Broken(f"after {CALM:.0f} calm seconds there are still {left or cluster.arrays.rows or self.watch.live}")
        finished = self._finished()
        for key in chain.from_iterable(map(self._keys, self.acknowledged)):
            if finished[key] != 1:
                raise Broken(f"job {show(key)} finished {finished[key]} times")
        submitted = sum(isinstance(event, ev.JobSubmitted) for event in self.disk.events)
        if submitted > self.submissions:
            raise Broken(f"{self.submissions} submissions made {submitted} jobs")
        for event in self.disk.events:
            if isinstance(event, ev.JobFinished):
                self._check_outcome(event)

    def _check_outcome(self, event: ev.JobFinished) -> None:
        """The outcome is the one that the first process of some attempt gave, unless someone or something ended it."""
        name = f"job {show(event.key)}"
        if event.key in self.killed and event.state is JobState.EXIT:
            return
        uids = self.watch.uids.get(event.key, [])
        lost = event.reason is TermReason.TERM_UNKNOWN
        newest = next(e for e in reversed(self.disk.events) if isinstance(e, ev.JobDispatched) and e.key == event.key)
        ran_on = set(self.watch.ends.get(newest.uid, ()))
        if lost and event.key not in self.watch.leased and not {part.host for part in newest.parts} <= ran_on:
            return  # a host forgot its part: it may have run there for all that the master can know
        if not uids:
            raise Broken(f"{name} is {event.state.name} and never ran: {event}")
        if lost:
            if event.key in self.watch.leased or None not in self.watch.ends[uids[-1]].values():
                raise Broken(f"{name} is said to be lost, but its processes ended as {self.watch.ends[uids[-1]]}")
            return
        wanted = self._task(event.key)[1]
        if event.status != wanted or (event.state is JobState.DONE) != (wanted == 0):
            raise Broken(f"{name} is {event.state.name} with status {event.status}, its process ends with {wanted}: {event}")
        if wanted not in self.watch.ends[uids[-1]].values():
            raise Broken(f"{name} has status {wanted}, but its last attempt ended as {self.watch.ends[uids[-1]]}")

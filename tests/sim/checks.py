"""What no schedule may ever do, counted from the jobs' own records: not from the sums and ledgers that the scheduler uses."""

from __future__ import annotations

from collections import Counter, defaultdict

from config.model.cluster import Limit
from lavad.core.cluster.cluster import Cluster
from lavad.core.job.job import Job, Part
from lavad.core.job.spec import Spec
from lavad.core.lang.states import OVER, JobState

EXCLUSIVE = 1_000


class Broken(AssertionError):
    """The message says what was broken."""


def require(true: bool, what: str) -> None:
    """Raise ``Broken`` unless it is so."""
    if not true:
        raise Broken(what)


def running(cluster: Cluster) -> list[tuple[Job, Spec, list[Part]]]:
    """Started jobs that hold their slots, with what they hold."""
    found = []
    for job in cluster.jobs.rows.values():
        if job.run is not None:
            parts = [part for part in job.run.parts if part.state not in OVER]
            found.append((job, cluster.specs.rows[job.spec], parts))
    return found


def check_capacity(cluster: Cluster) -> None:
    """Where no host comes to have fewer slots, none has more in use than it has; preempted jobs have given theirs up."""
    slots: Counter[str] = Counter()
    for job, _, parts in running(cluster):
        given_up = bool(job.preempted_for) and not job.preempted_for_good
        for part in parts:
            slots[part.host] += 0 if given_up else part.slots
    for host, used in slots.items():
        has = cluster.slots_of(host)
        require(has < 0 or used <= has, f"host {host} has {has} slots and {used} are in use")


def check_hosts(cluster: Cluster, slots: int, mem: float) -> None:
    """No host has more slots or memory in use than it has, and none beside a job that wants it for itself."""
    used: Counter[str] = Counter()
    reserved: Counter[str] = Counter()
    jobs: defaultdict[str, list[bool]] = defaultdict(list)
    for job, spec, parts in running(cluster):
        for part in parts:
            used[part.host] += 0 if job.preempted_for else part.slots
            reserved[part.host] += round(dict(part.reserved).get("mem", 0.0))
            jobs[part.host].append(spec.exclusive)
    for host, count in used.items():
        require(count <= slots, f"{host} has {count} slots in use of {slots}")
        require(reserved[host] <= mem, f"{host} has {reserved[host]} MB reserved of {mem}")
        require(len(jobs[host]) == 1 or not any(jobs[host]), f"{host} is not alone with its exclusive job")


def check_gpus(cluster: Cluster, each: int) -> None:
    """Each job has as many GPUs as it asked for, nobody else has those that it has for itself, and none has more memory reserved
    than its ``each`` MB."""
    held: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    for job, spec, parts in running(cluster):
        if spec.gpu is None:
            continue
        for part in parts:
            wanted = (spec.gpu.num or 1) * (part.slots if spec.gpu.per == "task" else 1)
            require(len(set(part.gpus)) == wanted, f"job {job.key} has {part.gpus} and asked for {wanted} GPUs")
            held.update(dict.fromkeys(part.gpus, EXCLUSIVE if spec.gpu.j_exclusive else 1))
            memory.update(dict.fromkeys(part.gpus, int(spec.gpu.gmem_mb or 0)))
    for uuid, count in held.items():
        require(count <= EXCLUSIVE, f"{uuid} is given twice")
        require(memory[uuid] <= each, f"of {uuid}'s {each} MB {memory[uuid]} are reserved")


def check_licences(cluster: Cluster, name: str, most: float) -> None:
    """Whoever asked for licences has them, and there are never more than were bought."""
    total = 0
    for job, spec, parts in running(cluster):
        if f"rusage[{name}=" in spec.resreq:
            wanted = int(spec.resreq.partition(f"{name}=")[2].partition("]")[0])
            has = sum(dict(part.reserved).get(name, 0.0) for part in parts)
            require(has == wanted, f"job {job.key} has {has} of {name} and asked for {wanted}")
            total += wanted
    require(total <= most, f"{total} of {most} {name} are in use")


def check_limits(cluster: Cluster, user: str, most: int) -> None:
    """A user has no more slots than the limit says."""
    used = sum(
        part.slots for job, spec, parts in running(cluster) if spec.user == user and not job.preempted_for for part in parts
    )
    require(used <= most, f"{user} has {used} slots of {most}")


def check_memory(cluster: Cluster, host: str, others: set[int]) -> None:
    """A host has no more memory reserved than it has, unless one of the jobs ``others`` is there."""
    here = [(job.key, part) for job, _, parts in running(cluster) for part in parts if part.host == host]
    mem = sum(dict(part.reserved).get("mem", 0.0) for _, part in here)
    most = cluster.hosts.rows[host].facts.max_mem
    require(mem <= most or any(key in others for key, _ in here), f"{host} has {mem} MB reserved of {most}")


def check_limit(cluster: Cluster, limit: Limit, started: set[int]) -> None:
    """No job has started beyond a limit of lsb.resources; what preempted jobs still hold is left out."""
    sums: dict[tuple[str, str], tuple[set[int], int, float]] = {}
    for job, spec, parts in running(cluster):
        others = (limit.users and spec.user not in limit.users) or (limit.queues and spec.queue not in limit.queues)
        if others or job.preempted_for:
            continue
        for part in parts:
            if limit.hosts and limit.hosts != ("all",) and part.host not in limit.hosts:
                continue
            who = spec.user if limit.per_user else "", part.host if limit.per_host else ""
            keys, slots, mem = sums.get(who, (set(), 0, 0.0))
            sums[who] = keys | {job.key}, slots + part.slots, mem + dict(part.reserved).get("mem", 0.0)
    for who, (keys, slots, mem) in sums.items():
        if started & keys:
            within = slots <= (limit.slots or slots) and len(keys) <= (limit.jobs or len(keys)) and mem <= (limit.mem or mem)
            require(within, f"{len(keys)} jobs, {slots} slots and {mem} MB of {who} are more than {limit}")


def check_gpu_limits(cluster: Cluster, user: str, most: int) -> None:
    """A user's jobs have no more GPUs than the limit says; a GPU counts for each job on it."""
    used = sum(len(part.gpus) for _, spec, parts in running(cluster) if spec.user == user for part in parts)
    require(used <= most, f"{user} has {used} GPUs of {most}")


def check_gangs(cluster: Cluster) -> None:
    """What started has all its slots; what waits has none."""
    for job, spec, _ in running(cluster):
        assert job.run is not None
        has = sum(part.slots for part in job.run.parts)
        require(spec.slots <= has <= max(spec.slots, spec.max_slots), f"job {job.key} has {has} slots of {spec.slots}")
    for job in cluster.jobs.rows.values():
        require(job.state is not JobState.PEND or job.run is None, f"job {job.key} waits and runs")


class Promises:
    """The promised start of the first job that is promised one: never later than it was, unless something was disturbed."""

    def __init__(self) -> None:
        self.key = 0
        self.start = 0.0

    def disturb(self) -> None:
        """A host went away, or somebody came who goes first: promises begin again."""
        self.key = 0

    def check(self, cluster: Cluster, promised: dict[int, float], now: float, longest: float) -> None:
        """After a cycle; ``promised``: all promises of it, by a scheduler that is right. ``longest``: of all run limits."""
        if self.key in promised:
            require(promised[self.key] <= self.start + 1, f"job {self.key}: {self.start} was promised, now {promised[self.key]}")
        elif self.key and (job := cluster.jobs.rows.get(self.key)) is not None and job.run is None:
            require(now < self.start + 1, f"job {self.key} was promised {self.start}, and at {now} it still waits")
        first = min(promised, default=0)
        if first != self.key:
            self.key = first
        if first:
            self.start = promised[first]
            require(self.start <= now + longest + 1, f"job {first} is promised {self.start} at {now}: it starves")


def used_shares(slot_seconds: dict[str, float], shares: dict[str, int]) -> dict[str, float]:
    """What each user got for each share: 1.0 is just right."""
    got, total = sum(slot_seconds[user] for user in shares), sum(shares.values())
    return {user: slot_seconds[user] / got / (count / total) for user, count in shares.items()}


def check_shares(slot_seconds: dict[str, float], shares: dict[str, int], within: float) -> None:
    """Users got what their shares say."""
    for user, ratio in used_shares(slot_seconds, shares).items():
        require(abs(ratio - 1) <= within, f"{user} got {ratio:.3f} of its share")

"""brun: an administrator starts a pending job now on named hosts. Queues, limits and conditions are ignored; the capacity of
hosts is not."""

from __future__ import annotations

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.select import get_target
from lavad.core.events.records import record_of
from lavad.core.job.depend import MET
from lavad.core.job.job import Job, Placed
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Refused, Run
from lavad.core.lang.gpureq import GpuReq
from lavad.core.lang.states import WAITING, JobState
from lavad.core.rules.gpus import per_task, pick, room
from lavad.core.rules.ledger import HostLedger, Ledger
from lavad.core.site.rights import why_not_admin
from proto.numbers import find_number


def force(cluster: Cluster, ask: Run, caller: Caller, now: float, uid: str) -> Decided:
    """Dispatch the job; raises Refused. ``uid``: random uid for the attempt."""
    if why := why_not_admin(cluster.conf, caller):
        raise Refused(why)
    job = _job(cluster, ask.job, caller)
    spec = cluster.specs.rows[job.spec]
    if spec.roles:
        raise Refused("A job with roles cannot be forced to run by lava")
    if "affinity" in spec.resreq:
        raise Refused("A job that binds CPUs (affinity[]) cannot be forced to run by lava")
    parts = _placed(cluster, spec, ask.hosts)
    events: list[ev.Event] = []
    if job.blocked:
        events.append(ev.ElementSplit(at=now, key=job.key))
        events.append(ev.DependencyJudged(at=now, key=job.key, stands=MET))
    if job.state is JobState.PSUSP:
        events.append(ev.JobReleased(at=now, key=job.key, by=caller.user))
    dispatched = ev.JobDispatched(
        at=now, key=job.key, attempt=job.attempt + 1, uid=uid, parts=parts, forced=ask.force, afresh=ask.afresh
    )
    events.append(dispatched)
    return Decided(events=events, answer={"job": ask.job})


def _job(cluster: Cluster, text: str, caller: Caller) -> Job:
    target = get_target(cluster, text, caller)
    keys = [key for key in target.keys if cluster.jobs.rows[key].state in WAITING]
    if not keys and target.untouched:
        keys = [target.untouched.min() << 32 | target.array]
    if not keys:
        raise Refused("Job has already started")
    return record_of(cluster, keys[0])


def _placed(cluster: Cluster, spec: Spec, words: list[str]) -> tuple[Placed, ...]:
    """Slots and GPUs on the named hosts (``h1#2``: at most two slots there) in their order; without names, on any hosts but
    those that a job has for itself, as in LSF."""
    ledger = Ledger(cluster)
    left, parts = spec.slots, []
    for name, most in _hosts(cluster, words).items():
        if ledger.why_not_host(name):
            continue
        mine = ledger.host(name)
        if mine.exclusive and not words:
            continue
        slots = min(left, most, mine.free)
        if spec.gpu is not None:
            slots = _with_gpus(mine, spec.gpu, slots)
        if slots > 0:
            gpus = pick(mine.gpus, mine.gpu_book, spec.gpu, slots) if spec.gpu is not None else ()
            parts.append(Placed(host=name, slots=slots, gpus=gpus))
            left -= slots
        if not left:
            return tuple(parts)
    raise Refused(f"Not enough free job slots{'' if spec.gpu is None else ' or GPUs'} on the hosts")


def _with_gpus(host: HostLedger, gpu: GpuReq, slots: int) -> int:
    """How many of these slots there are GPUs for."""
    sets = room(host.gpus, host.gpu_book, gpu) // (gpu.num or 1)
    return min(slots, sets) if per_task(gpu) else slots * (sets > 0)


def _hosts(cluster: Cluster, words: list[str]) -> dict[str, int]:
    """The most slots for the job on each host; a host that is named twice, or by a group too, is one."""
    found: dict[str, int] = {}
    for word in words or ["all"]:
        base, _, count = word.partition("#")
        most = find_number(count, 1) if count else 0
        if most is None:
            raise Refused(f"{word}: Bad host specification")
        names = list(cluster.hosts.rows) if base == "all" else sorted(cluster.conf.groups_of_hosts.hosts(base))
        if not names or any(name not in cluster.hosts.rows for name in names):
            raise Refused(f"{base}: Bad host name, host group name or cluster name")
        for name in names:
            found[name] = found.get(name, 0) + (most or spec_most(cluster, name))
    return found


def spec_most(cluster: Cluster, host: str) -> int:
    """As many slots as the host has."""
    slots = cluster.slots_of(host)
    return slots if slots >= 0 else 2**31 - 1

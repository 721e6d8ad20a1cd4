"""Hosts: an agent connects, falls silent, returns; an administrator opens or closes a host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.leases import lease_of, margin_of
from lavad.core.decide.base.chunk import leave_chunk
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.specs import together
from lavad.core.decide.control.control import may_migrate, migration
from lavad.core.decide.control.depart import departing
from lavad.core.decide.report.array_ends import with_array_ends
from lavad.core.decide.report.copies import holders_lost, holders_moved
from lavad.core.decide.report.gpus import Cause, close_gpu
from lavad.core.decide.report.parts import fenced, may_go, shrink_now, unknown
from lavad.core.job.chunk import RUNS
from lavad.core.job.job import Attempt, Job, Part
from lavad.core.job.places import places_of
from lavad.core.job.resize import may_lose, staying, uid_of
from lavad.core.lang.asks import Caller, Hosts, Refused
from lavad.core.lang.states import OVER, STARTED, SUSPENDED, HostState, JobState, PartState
from lavad.core.site.host import Facts
from lavad.core.site.rights import why_not_switch
from proto.answers import Result


def _maybe(run: Attempt) -> bool:
    return True


def greeted(
    cluster: Cluster,
    host: str,
    facts: Facts,
    known: Mapping[str, str],
    now: float,
    was_sent: Callable[[Attempt], bool] = _maybe,
    gpus_unknown: bool = False,
) -> list[ev.Event]:
    """An agent has connected; ``known`` maps the uid of each part that it has to the state of the part there.

    A part that ran and is unknown to the host is lost; one that never reached the host is offered again. ``was_sent``: whether
    the start of an attempt may have reached the host; a host without local state forgets it at a reboot. ``gpus_unknown``: the
    driver does not answer, so the host keeps the GPUs that it had, closed by the same commit: no job is given one.
    """
    events: list[ev.Event] = []
    row = cluster.hosts.rows.get(host)
    if row is not None and gpus_unknown:
        facts = replace(facts, gpus=row.facts.gpus, gpu_driver=row.facts.gpu_driver)
        for gpu in facts.gpus:
            events += close_gpu(cluster, host, gpu.uuid, Cause.HEALTH, "the NVIDIA driver does not answer", now)
    if row is None or row.facts != facts or not row.joined:
        events.append(ev.HostJoined(at=now, host=host, facts=facts))
    if row is None or row.state is not HostState.OK:
        events.append(ev.HostUp(at=now, host=host))
    booted = row is not None and row.facts.boot_id not in ("", facts.boot_id)
    jobs = [cluster.jobs.rows[key] for key in sorted(cluster.use.hosts[host].jobs)]
    runs = [(job, job.run) for job in jobs if job.run is not None]
    events += together(cluster, (_compare(cluster, job, run, host, known, booted and was_sent(run), now) for job, run in runs))
    return [*with_array_ends(cluster, events, now), *holders_moved(cluster, host, facts.copies_port, now)]


def _compare(
    cluster: Cluster, job: Job, run: Attempt, host: str, known: Mapping[str, str], forgot: bool, now: float
) -> list[ev.Event]:
    part = run.parts[places_of(run, host)[0]]
    uid = uid_of(run, part)
    if uid in known or _may_offer(cluster, job, run, part, forgot):
        if job.state in (JobState.UNKWN, JobState.ZOMBI) and _all_heard(cluster, job, host):
            found = ev.JobFound(at=now, key=job.key, state=job.before)
            return [found, ev.GangReleased(at=now, key=job.key, attempt=run.number)] if may_go(run) else [found]
        return []
    return unknown(cluster, job, run, part, now)


def _may_offer(cluster: Cluster, job: Job, run: Attempt, part: Part, forgot: bool) -> bool:
    """Whether a part that is unknown to the host never ran there, or may run again."""
    if part.state is not PartState.OFFERED:
        return False
    spec = cluster.specs.rows[job.spec]
    return len(run.parts) > 1 or run.elastic or not forgot or spec.rerunnable or spec.checkpoint is not None


def _all_heard(cluster: Cluster, job: Job, host: str) -> bool:
    assert job.run is not None
    others = (part.host for part in staying(job.run) if part.host != host)
    return all(cluster.hosts.rows[other].state is HostState.OK for other in others if other in cluster.hosts.rows)


def leased_parts(cluster: Cluster, host: str) -> Iterator[tuple[int, float, float]]:
    """Jobs that may run again and have a part on the host: (key, lease, margin), in seconds."""
    use = cluster.use.hosts.get(host)
    for key in sorted(use.jobs) if use is not None else ():
        job = cluster.jobs.rows[key]
        spec, run = cluster.specs.rows[job.spec], job.run
        if run is None or all(part.state in OVER for part in run.parts if part.host == host):
            continue
        if lease := run.lease or lease_of(cluster, spec):
            yield key, lease, margin_of(cluster, spec)


def silent(cluster: Cluster, host: str, now: float) -> list[ev.Event]:
    """The host has been silent for its timeout: its jobs become UNKWN."""
    row = cluster.hosts.rows.get(host)
    if row is None or row.state is not HostState.OK:
        return []
    events: list[ev.Event] = [ev.HostDown(at=now, host=host)]
    for key in sorted(cluster.use.hosts[host].jobs):
        job = cluster.jobs.rows[key]
        run = job.run
        part = next((part for part in run.parts if part.host == host), None) if run is not None else None
        if run is not None and part is not None and may_lose(job, cluster.specs.rows[job.spec], host):
            if not part.leaving:
                events.append(shrink_now(job, run, part, f"host {host} is not heard", now))
        elif job.state in RUNS or job.state in SUSPENDED:
            events.append(ev.JobLost(at=now, key=key, host=host))
    return [*events, *holders_lost(cluster, host, now)]


def expired(cluster: Cluster, host: str, keys: Iterable[int], now: float) -> list[ev.Event]:
    """The leases of these jobs on a silent host, and their margins, have passed: they are fenced."""
    row = cluster.hosts.rows.get(host)
    if row is None or row.state is HostState.OK:
        return []  # it has reconnected
    there = {key for key, _, _ in leased_parts(cluster, host)}
    return with_array_ends(cluster, together(cluster, (fenced(cluster, key, host, now) for key in keys if key in there)), now)


def _meant(cluster: Cluster, word: str) -> Iterable[str]:
    """The hosts that a word of hopen or hclose names: of a group those that have joined."""
    if word not in cluster.conf.groups_of_hosts.members:
        return (word,)
    found, joined = cluster.conf.groups_of_hosts.hosts(word), cluster.hosts.rows
    return sorted(joined) if "all" in found else [name for name in found if name in joined]


@decides(Hosts)
def switch_hosts(cluster: Cluster, ask: Hosts, caller: Caller, now: float) -> Decided:
    """badmin hopen and hclose; stops at the first refused host, as LSF does."""
    decided = Decided(answer={"results": []})
    names = ask.hosts or [caller.host]
    if ask.migrate and not ask.close:
        raise Refused("hopen: jobs leave a host when it is closed")
    if names == ["all"]:
        if ask.migrate:
            raise Refused("all: no host would be left that jobs can start on: name those that they are to leave")
        names = sorted(cluster.hosts.rows)
    asked: set[int] = set()
    for name in dict.fromkeys(member for word in names for member in _meant(cluster, word)):
        if name not in cluster.hosts.rows:
            raise Refused("Bad host name, host group name or cluster name")
        if why := why_not_switch(cluster.conf, name, caller) or ("" if ask.close else departing(cluster, name, now)):
            decided.answer["results"].append({"host": name, "ok": False, "why": why})
            continue
        event = ev.HostSwitched(at=now, host=name, closed=ask.close, by=caller.user, comment=ask.comment)
        decided.events.append(event)
        result: Result = {"host": name, "ok": True, "why": ""}
        if ask.migrate:
            result["leave"], result["stay"] = _leave(cluster, name, decided.events, asked, caller.user, now)
        decided.answer["results"].append(result)
    return decided


def _leave(cluster: Cluster, host: str, events: list[ev.Event], asked: set[int], by: str, now: float) -> tuple[int, int]:
    """Migrate the jobs on a host: (how many leave it, how many run on). ``asked``: those of which another host has done so."""
    leave = stay = 0
    for key in sorted(cluster.use.hosts[host].jobs):
        job = cluster.jobs.rows[key]
        if job.run is None or job.state not in STARTED:
            continue
        spec = cluster.specs.rows[job.spec]
        ends = key in asked or job.run.is_ending
        waits = job.state is JobState.WAIT
        if not ends and not waits and not may_migrate(cluster, spec):
            stay += 1
            continue
        leave += 1
        asked.add(key)
        if waits and not ends:
            events.append(leave_chunk(job, by, now, JobState.PEND, f"host {host} is closed"))
        elif not ends:
            pending = migration(cluster, spec, by, now, f"host {host} is closed")
            events.append(ev.SignalRequested(at=now, key=key, pending=pending))
    return leave, stay

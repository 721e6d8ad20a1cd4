"""Hosts: an agent greets, falls silent, comes back; an administrator opens or closes a host."""

from __future__ import annotations

from collections.abc import Mapping

from lavad.core import events as ev
from lavad.core.asks import Caller, Hosts, Refused
from lavad.core.cluster import Cluster
from lavad.core.decide.decided import Decided
from lavad.core.decide.report import ended, fenced
from lavad.core.host import Facts
from lavad.core.job import End, Job
from lavad.core.rights import is_admin
from lavad.core.states import OVER, SUSPENDED, HostState, JobState, PartState


def greeted(cluster: Cluster, host: str, facts: Facts, known: Mapping[str, str], now: float) -> list[ev.Event]:
    """An agent's greeting: ``known`` maps the uid of each part that it has to that part's state there.

    A part that ran and that the host no longer knows is lost; one that it never got is simply offered again.
    """
    events: list[ev.Event] = []
    row = cluster.hosts.rows.get(host)
    if row is None or row.facts != facts or not row.joined:
        events.append(ev.HostJoined(at=now, host=host, facts=facts))
    if row is None or row.state is not HostState.OK:
        events.append(ev.HostUp(at=now, host=host))
    for key in sorted(cluster.use.hosts[host].jobs):
        job = cluster.jobs.rows[key]
        events += _compare(cluster, job, host, known, now)
    return events


def _compare(cluster: Cluster, job: Job, host: str, known: Mapping[str, str], now: float) -> list[ev.Event]:
    run = job.run
    assert run is not None
    part = next(part for part in run.parts if part.host == host)
    if run.uid in known:
        if job.state in (JobState.UNKWN, JobState.ZOMBI) and _all_heard(cluster, job, host):
            return [ev.JobFound(at=now, key=job.key, state=_state_of(job))]
        return []
    if part.state in (PartState.OFFERED, PartState.PREPARED) and len(run.parts) == 1:
        found = [ev.JobFound(at=now, key=job.key, state=JobState.RUN)] if job.state is JobState.UNKWN else []
        return list(found)
    end = End(at=now, lost=f"host {host} no longer has it: the host or its starter was restarted")
    return ended(cluster, job.key, run.uid, host, end, True, now)


def _all_heard(cluster: Cluster, job: Job, host: str) -> bool:
    assert job.run is not None
    others = (part.host for part in job.run.parts if part.host != host and part.state not in OVER)
    return all(cluster.hosts.rows[other].state is HostState.OK for other in others if other in cluster.hosts.rows)


def _state_of(job: Job) -> JobState:
    assert job.run is not None
    return JobState.USUSP if any(part.stopped for part in job.run.parts) else JobState.RUN


def silent(cluster: Cluster, host: str, now: float) -> list[ev.Event]:
    """The master has not heard a host for its timeout: its jobs are UNKWN."""
    row = cluster.hosts.rows.get(host)
    if row is None or row.state is not HostState.OK:
        return []
    events: list[ev.Event] = [ev.HostDown(at=now, host=host)]
    for key in sorted(cluster.use.hosts[host].jobs):
        job = cluster.jobs.rows[key]
        if job.state is JobState.RUN or job.state in SUSPENDED:
            events.append(ev.JobLost(at=now, key=key, host=host))
    return events


def expired(cluster: Cluster, host: str, now: float) -> list[ev.Event]:
    """Lease and margin of a silent host have passed: its rerunnable and checkpointable jobs are fenced."""
    events: list[ev.Event] = []
    for key in sorted(cluster.use.hosts[host].jobs):
        spec = cluster.spec_of(key)
        if spec.rerunnable or spec.checkpoint is not None:
            events += fenced(cluster, key, host, now)
    return events


def switch_hosts(cluster: Cluster, ask: Hosts, caller: Caller, now: float) -> Decided:
    """badmin hopen and hclose; stops at the first host that is refused, as LSF does."""
    decided = Decided(answer={"results": []})
    names = ask.hosts or [caller.host]
    groups = dict(cluster.conf.host_groups)
    if names == ["all"]:
        names = sorted(cluster.hosts.rows)
    for name in [member for group in names for member in groups.get(group, (group,))]:
        if name not in cluster.hosts.rows:
            raise Refused("Bad host name, host group name or cluster name")
        if not is_admin(cluster.conf, caller):
            decided.answer["results"].append({"host": name, "ok": False, "why": "User permission denied"})
            continue
        event = ev.HostSwitched(at=now, host=name, closed=ask.close, by=caller.user, comment=ask.comment)
        decided.events.append(event)
        decided.answer["results"].append({"host": name, "ok": True, "why": ""})
    return decided

"""bresize: a running job releases hosts or slots, requests more, or cancels its request.

Rule: one slot of the first host always stays. Users may release below the job's minimum; lava itself never does.
"""

from __future__ import annotations

import re

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.select import get_target
from lavad.core.decide.submit.slots import MAX_COMMAND
from lavad.core.job.job import Attempt, Job, Part, Placed
from lavad.core.job.resize import by_hosts, slots_of, staying, wants
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Refused, Resize
from lavad.core.lang.bounds import MAX_INT32
from lavad.core.lang.states import JobState, PartState
from lavad.core.rules.per_slot import taken
from lavad.core.site.conf import Conf

_WORD = re.compile(r"(?:(\d{1,9})\*)?([^\s*~]+)")


@decides(Resize)
def resize(cluster: Cluster, ask: Resize, caller: Caller, now: float) -> Decided:
    """Decide a bresize request; raises Refused."""
    command = ask.command
    if command and not (command.startswith("/") and command.isprintable() and len(command) <= MAX_COMMAND):
        raise Refused("The resize notification command must be an absolute path")
    target = get_target(cluster, ask.job, caller)
    if target.array and (target.untouched or len(target.keys) != 1):
        raise Refused(f"Job <{ask.job}>: Name one running element of the array")
    job = cluster.jobs.rows[target.keys[0]]
    spec, run = cluster.specs.rows[job.spec], job.run
    if run is None:
        raise Refused(f"Job <{ask.job}>: Job has not started yet")
    if not run.elastic:
        raise Refused(f"Job <{ask.job}>: Job is not resizable")
    if job.state is not JobState.RUN or run.parts[0].state is not PartState.RUNNING or run.verdict is not None:
        raise Refused(f"Job <{ask.job}>: Job is not running")
    if ask.what == "release":
        events = _release(job, run, spec, ask, caller, cluster.conf, now)
    elif ask.what == "request":
        events = _request(job, run, spec, ask, caller, now)
    elif ask.what == "cancel":
        events = _cancel(job, run, spec, ask, caller, now)
    else:
        raise Refused(f"{ask.what}: Unknown bresize subcommand")
    return Decided(events=events, answer={"job": ask.job})


def _request(job: Job, run: Attempt, spec: Spec, ask: Resize, caller: Caller, now: float) -> list[ev.Event]:
    if not 0 < ask.least <= ask.most <= MAX_INT32:
        asked = f"{ask.least},{ask.most}" if ask.least != 1 else str(ask.most)
        raise Refused(f"{asked}: The number of processors must be a positive integer")
    _nothing_waits(run, spec, ask)
    most = slots_of(run) + ask.most
    return [_asked(job, run, ask, caller, now, ask.least, most)]


def _cancel(job: Job, run: Attempt, spec: Spec, ask: Resize, caller: Caller, now: float) -> list[ev.Event]:
    if not wants(run, spec)[1]:
        raise Refused(f"Job <{ask.job}>: No resize request is pending")
    return [_asked(job, run, ask, caller, now, 0, 0)]


def _asked(job: Job, run: Attempt, ask: Resize, caller: Caller, now: float, least: int, most: int) -> ev.ResizeAsked:
    return ev.ResizeAsked(at=now, key=job.key, attempt=run.number, least=least, most=most, command=_command(ask), by=caller.user)


def _command(ask: Resize) -> str | None:
    return "" if ask.silent else ask.command or None


def _nothing_waits(run: Attempt, spec: Spec, ask: Resize) -> None:
    if run.resize is not None:
        raise Refused(f"Job <{ask.job}>: A resize of the job is under way")
    if wants(run, spec)[1] and not ask.cancel:
        raise Refused(f"Job <{ask.job}>: A resize request is pending; cancel it first (bresize cancel, or -c)")


def _release(job: Job, run: Attempt, spec: Spec, ask: Resize, caller: Caller, conf: Conf, now: float) -> list[ev.Event]:
    parts = released(run, spec, ask, conf)
    _nothing_waits(run, spec, ask)
    events: list[ev.Event] = []
    if run.wanted[1] if run.wanted is not None else spec.autoresize:
        # slots that a user released are not taken again without another request, whether the previous one was fulfilled or not
        events.append(_asked(job, run, ask, caller, now, 0, 0))
    own = _command(ask)
    command = spec.resize_command if own is None else own
    number = run.resizes + 1
    events.append(
        ev.JobShrank(at=now, key=job.key, attempt=run.number, number=number, parts=parts, command=command, by=caller.user)
    )
    if not command:
        events.append(ev.JobResized(at=now, key=job.key, attempt=run.number, number=number))
    return events


def released(run: Attempt, spec: Spec, ask: Resize, conf: Conf) -> tuple[Placed, ...]:
    """The part of the job's allocation that ``all``, ``all ~[n*]host …`` or ``[n*]host …`` names."""
    words = ask.hosts.split()
    if not words:
        raise Refused("Bad host specification")
    known = {part.host: part for part in staying(run)}
    first = run.parts[0].host
    if words[0] == "all":
        named = {host: part.slots for host, part in known.items()}
        for host, slots in (_word(word.removeprefix("~"), known, ask) for word in words[1:] if _is_kept(word)):
            named[host] -= slots
        named[first] = min(named[first], known[first].slots - 1)
    else:
        named = {}
        for host, slots in (_word(word, known, ask) for word in words):
            named[host] = named.get(host, 0) + slots
    if named.get(first, 0) >= known[first].slots:
        raise Refused(f"{first}: At least one slot on the first execution host must stay")
    if by_hosts(spec):
        named = {host: slots if slots >= known[host].slots else 0 for host, slots in named.items()}
    found = tuple(taken(known[host], slots, spec, conf) for host, slots in named.items() if slots > 0)
    if not found:
        raise Refused(f"Job <{ask.job}>: Nothing to release")
    return found


def _is_kept(word: str) -> bool:
    if not word.startswith("~"):
        raise Refused(f"{word}: Bad host specification")
    return True


def _word(word: str, known: dict[str, Part], ask: Resize) -> tuple[str, int]:
    match = _WORD.fullmatch(word)
    part = known.get(match[2]) if match is not None else None
    if match is None:
        raise Refused(f"{word}: Bad host specification")
    if part is None:
        raise Refused(f"{match[2]}: Host is not allocated to job <{ask.job}>")
    slots = int(match[1]) if match[1] else part.slots
    if not 0 < slots <= part.slots:
        raise Refused(f"{word}: The job has {part.slots} slots on host <{part.host}>")
    return part.host, slots

"""btop and bbot: administrators move jobs among all that wait in the queue with the same priority, users among their own of them.

Rule: users cannot overtake others: their own jobs swap positions with each other, or move further back.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nextafter

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.select import Target, get_target
from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Caller, Move, Refused
from lavad.core.lang.ids import job_of, key_of
from lavad.core.lang.states import WAITING
from lavad.core.site.conf import Conf
from lavad.core.site.rights import why_not_queue

MOST = 1000
"""Own jobs that one btop may move, where jobs of other users are between them."""

QueuePosition = tuple[float, float, int, int]
"""Sort key of the scheduler: (position, queue time, job id, key)."""


@decides(Move)
def move(cluster: Cluster, ask: Move, caller: Caller, now: float) -> Decided:
    """Decide btop and bbot; raises Refused."""
    target = get_target(cluster, ask.job, caller)
    key = _key_to_move(cluster, ask.job, target)
    record = cluster.get(key)
    if isinstance(record, Job) and record.state not in WAITING:
        raise Refused(f"{ask.job}: Job has already started")
    spec = cluster.specs.rows[record.spec]
    conf = cluster.conf
    denied = why_not_queue(conf, spec.queue, caller)
    if conf.params.job_position_control_by_admin and denied:
        raise Refused(f"{ask.job}: {denied}")
    if _is_by_aps(conf, spec.queue):
        raise Refused(f"{ask.job}: Jobs of a queue with APS_PRIORITY cannot be moved")
    rows = _positions(cluster, spec, key)
    if not denied and not ask.own:
        others = sorted(place for place, other in rows if other.priority == spec.priority)
        place = min(max(ask.place, 1), len(others) + 1)
        events = _among_all(others, key, ask.top, place, caller, now)
    else:
        place, events = _among_own(cluster, rows, spec, key, ask, caller, now)
    return Decided(events=events, answer={"job": ask.job, "place": place})


def _is_by_aps(conf: Conf, name: str) -> bool:
    """Whether absolute priority orders the jobs of a queue: its own, or that of the queue in whose QUEUE_GROUP it is."""
    return any(
        queue.aps_priority is not None and (queue.name == name or (queue.share is not None and name in queue.share.queues))
        for queue in conf.queues
    )


def _key_to_move(cluster: Cluster, text: str, target: Target) -> int:
    """The array for its untouched elements; else the first pending element, else the first named one."""
    if target.array and target.untouched:
        return target.array if "[" not in text else key_of(target.array, target.untouched.min())
    waiting = (key for key in target.keys if cluster.jobs.rows[key].state in WAITING)
    return next(waiting, target.keys[0])


def _position_of(cluster: Cluster, key: int) -> QueuePosition:
    row = cluster.get(key)
    return row.position, row.queue_time or row.submitted, job_of(key), key


def _positions(cluster: Cluster, spec: Spec, key: int) -> list[tuple[QueuePosition, Spec]]:
    """The other pending jobs of the queue with their positions."""
    found = []
    for number, pending in cluster.pending.items():
        other = cluster.specs.rows[number]
        if other.queue == spec.queue:
            found += [(_position_of(cluster, one), other) for one in pending if one != key]
    return found


def _among_all(others: list[QueuePosition], key: int, top: bool, place: int, caller: Caller, now: float) -> list[ev.Event]:
    events: list[ev.Event] = []
    beyond = others[: place - 1] if top else others[:-place:-1]
    position = _between(others, place, top)
    if beyond and position == beyond[-1][0]:
        # its neighbours have the same position: those beyond it are moved first, to make room
        edge, step = (min(others[0][0], 0.0), -1.0) if top else (max(others[-1][0], 0.0), 1.0)
        for at, (_, queue_time, _, other) in enumerate(beyond):
            at_edge = edge + step * (len(beyond) + 1 - at)
            events.append(
                ev.JobMoved(at=now, key=other, position=at_edge, queue_time=queue_time, by=caller.user, top=top, place=at + 1)
            )
        position = edge + step
    events.append(ev.JobMoved(at=now, key=key, position=position, by=caller.user, top=top, place=place))
    return events


def _between(others: list[QueuePosition], place: int, top: bool) -> float:
    if not others:
        return -1.0 if top else 1.0
    if top:
        if place == 1:
            return min(others[0][0], 0.0) - 1.0
        before = others[place - 2][0]
        after = others[place - 1][0] if place - 1 < len(others) else before + 2.0
        return (before + after) / 2
    if place == 1:
        return max(others[-1][0], 0.0) + 1.0
    after = others[-(place - 1)][0]
    before = others[-place][0] if place <= len(others) else after - 2.0
    return (before + after) / 2


def _among_own(
    cluster: Cluster, rows: list[tuple[QueuePosition, Spec]], spec: Spec, key: int, ask: Move, caller: Caller, now: float
) -> tuple[int, list[ev.Event]]:
    """(the place that it got, the events that move the user's jobs)."""
    mine = _position_of(cluster, key)
    own = sorted(place for place, other in rows if other.user == spec.user and other.priority == spec.priority)
    asked = min(max(ask.place, 1), len(own) + 1)
    to = asked - 1 if ask.top else len(own) + 1 - asked
    at = sum(1 for place in own if place < mine)
    slots, to, swap = _slots(own, to, at, mine, (place for place, other in rows if other.user != spec.user))
    line = [*own[:to], mine, *own[to:]]
    place = to + 1 if ask.top else len(own) + 1 - to
    events: list[ev.Event] = []
    for (position, queue_time), row in _moves(cluster, line, slots, to, swap):
        if (position, queue_time) != row[:2] or row[3] == key:
            moved = ev.JobMoved(
                at=now,
                key=row[3],
                position=position,
                queue_time=queue_time,
                by=caller.user,
                top=ask.top,
                place=place if row[3] == key else line.index(row) + 1,
            )
            events.append(moved)
    return place, events


def _slots(
    own: list[QueuePosition], to: int, at: int, mine: QueuePosition, strangers: Iterable[QueuePosition]
) -> tuple[list[QueuePosition], int, bool]:
    """(the positions that the user's jobs share out, the index that the job gets, whether jobs swap theirs).

    The job goes from ``at`` to ``to``; in front of the one there it has a position of its own if no job of others is passed.
    """
    if to >= at:
        return [*own[:to], own[to - 1] if to > at else mine, *own[to:]], to, False
    before = (own[to][0], nextafter(own[to][1], -inf), *mine[2:])
    if (to == 0 or own[to - 1] < before) and not any(before[:2] <= place[:2] <= mine[:2] for place in strangers):
        return [*own[:to], before, *own[to:]], to, False
    return [*own[:at], mine, *own[at:]], max(to, at - MOST), True


def _moves(
    cluster: Cluster, line: list[QueuePosition], slots: list[QueuePosition], start: int, swap: bool
) -> list[tuple[tuple[float, float], QueuePosition]]:
    """The new position of each job for this order; an array never takes the position of a job further to the front."""
    found = []
    last = line[start - 1] if start else (-inf, -inf, 0, 0)
    for row, slot in zip(line[start:], slots[start:], strict=True):
        place = max(slot[:2], row[:2]) if swap and row[3] in cluster.arrays.rows else slot[:2]
        now = (*max(place, last[:2]), row[2], row[3])
        if now <= last:
            now = (now[0], nextafter(now[1], inf), row[2], row[3])
        found.append((now[:2], row))
        last = now
    return found

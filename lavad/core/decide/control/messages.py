"""bpost: a numbered message to a job."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.bulk import AT_ONCE
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.room import check_room
from lavad.core.decide.base.select import get_target, select
from lavad.core.events.records import is_live
from lavad.core.job.message import Message
from lavad.core.lang.asks import Caller, Post, Refused, Select
from lavad.core.lang.ids import show

MAX_NUMBER = 127
MAX_TEXT = 512
MAX_BODY = 64 << 10
MOST_ELEMENTS = 10_000
MOST_ATTACHED = 100
"""Elements that get attached data at a time: each has a copy of its own."""


@decides(Post)
def post(cluster: Cluster, ask: Post, caller: Caller, now: float) -> Decided:
    """Post a message; it replaces an older one of the same number."""
    most = min(MAX_NUMBER, cluster.conf.params.max_job_msg_num - 1)
    if not 0 <= ask.number <= most:
        raise Refused(f"{ask.number}: Bad message index: 0 to {most}")
    if len(ask.text) > MAX_TEXT or len(ask.body) > MAX_BODY:
        raise Refused(f"The message is too long: at most {MAX_TEXT} characters, and {MAX_BODY} of attached data")
    job = ask.job or _named(cluster, ask.select, caller)
    target = get_target(cluster, job, caller)
    if len(target.keys) + len(target.untouched) > MOST_ELEMENTS and "[" in job:
        raise Refused(f"{job}: At most {MOST_ELEMENTS} elements get a message at a time")
    whole = target.array and "[" not in job
    keys = [target.array, *target.keys] if whole else list(target.keys)
    if not whole and target.array:
        keys += [index << 32 | target.array for index in target.untouched]
    record = cluster.get(keys[0])
    check_room(cluster, cluster.specs.rows[record.spec].user, len(keys))
    if ask.body and not whole and len(keys) > MOST_ATTACHED:
        raise Refused(f"{job}: Data is attached to at most {MOST_ATTACHED} elements at a time")
    message = Message(number=ask.number, text=ask.text, at=now, by=caller.user, size=len(ask.body))
    decided = _posted(cluster, keys, message, target.array if whole else 0, job, now)
    holders = [target.array] if whole else keys
    decided.attached = [(holder, ask.number, ask.body) for holder in holders if ask.body]
    return decided


def _posted(cluster: Cluster, keys: Sequence[int], message: Message, array: int, job: str, now: float) -> Decided:
    """The message for some of the jobs and elements now, for the others in later turns if they are there then.

    ``array``: it has the attached data for all of them; 0: each has its own.
    """
    decided = Decided(answer={"job": job})
    for key in keys[:AT_ONCE]:
        if key == array or is_live(cluster, key):
            own = replace(message, attached=(array or key) if message.size else 0)
            decided.events.append(ev.MessagePosted(at=now, key=key, message=own))
    if left := keys[AT_ONCE:]:
        decided.more = lambda cluster, at: _posted(cluster, left, message, array, job, at)
    return decided


def _named(cluster: Cluster, wanted: Select, caller: Caller) -> str:
    """The id of the caller's job that ``wanted`` selects."""
    for target in select(cluster, replace(wanted, ids=[], user=""), caller):
        return show(target) if isinstance(target, int) else target.shown
    raise Refused(f"Job <{wanted.name[:80]}> is not found")

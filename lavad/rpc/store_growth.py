"""How much what a user asks adds to the store: at most LAVA_USER_STORE MB an hour, and so much at once.

Rule: nobody fills the disk of the master in a loop. What is beyond is answered ``later``, and the command tries again by itself.
To end jobs, which adds little, is possible up to twice as much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.events import ElementsKilled, JobSubmitted, SpecAdded
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller
from lavad.core.site.conf import Conf
from lavad.core.site.rights import is_admin
from lavad.lsb.write import MOST_TEXT
from lavad.requests import Decide

MB = 10**6
HOUR = 3600.0
OF_EVENT = 300
"""Bytes that an event takes beside its text: its row, its place in the indexes, the answer, a line of lsb.events."""
OF_ELEMENT = 700
"""Bytes that an element takes that ends with others in one event: its row, its place in the indexes, a line of both files."""
USUAL = 4096
"""Bytes of texts in the line of lsb.acct of an element; what is more counts for all elements of an array at its submission."""
COPIES = 2
"""A text stands in the store and in lsb.events, or in the event and in the record that it changes."""
SAMPLE = 10
"""Of a decision with more events, which are of one kind and no submissions, so many are measured."""
MOST_USERS = 10_000

_encode = msgspec.msgpack.Encoder().encode


class StoreGrowth:
    """Bytes by user, as agents vouch for names; they fade at the rate that is allowed. Times are seconds."""

    def __init__(self, mb_an_hour: Callable[[], int]) -> None:
        self._mb_an_hour = mb_an_hour
        self._levels: dict[str, tuple[float, float]] = {}
        """User to (bytes, when that was)."""
        self._envs: dict[str, str] = {}
        """User to the environment of the last submission, which is stored once."""

    def is_full(self, user: str, now: float, ends: bool = False) -> bool:
        """Whether the user has to wait; ``ends``: to end jobs."""
        most = self._mb_an_hour() * MB * (2 if ends else 1)
        return bool(most) and self._level(user, now) >= most

    def has_to_wait(self, conf: Conf, caller: Caller, now: float, ends: bool = False) -> bool:
        """The same of a caller; administrators never have to."""
        return self.is_full(caller.user, now, ends) and not is_admin(conf, caller)

    def counted(self, decide: Decide, user: str, env: tuple[str, bytes] | None = None) -> Decide:
        """The decision, which counts what it adds; ``env``: hash and bytes of an environment that comes with it."""

        def deciding(cluster: Cluster, now: float) -> Decided:
            decided = decide(cluster, now)
            self.count(decided, user, now, env, cluster.specs.rows)
            return decided

        return deciding

    def count(self, decided: Decided, user: str, now: float, env: tuple[str, bytes] | None, specs: Mapping[int, Spec]) -> None:
        """Count what a decision adds, as ``counted`` does; ``specs``: those that were known before it."""
        size = size_of(decided, specs)
        if env is not None and self._envs.get(user) != env[0]:
            self._envs[user] = env[0]
            size += len(env[1])
        self._add(user, size, now)
        if decided.more is not None:
            decided.more = self.counted(decided.more, user)

    def _level(self, user: str, now: float) -> float:
        level, at = self._levels.get(user, (0.0, now))
        return level if now <= at else max(0.0, level - (now - at) * self._mb_an_hour() * MB / HOUR)

    def _add(self, user: str, size: int, now: float) -> None:
        self._levels[user] = (self._level(user, now) + size, now)
        if len(self._levels) > MOST_USERS:
            least = min(self._levels, key=lambda one: self._level(one, now))
            del self._levels[least]
            self._envs.pop(least, None)


def size_of(decided: Decided, specs: Mapping[int, Spec]) -> int:
    """Bytes that a decision adds to the store, lsb.events and lsb.acct, about."""
    events = decided.events
    if len(events) > SAMPLE and not decided.texts:
        said = len(_encode(events[:SAMPLE])) * len(events) // SAMPLE
    else:
        said = len(_encode((events, decided.texts))) if events or decided.texts else 0
    attached = sum([len(body) for _, _, body in decided.attached]) if decided.attached else 0
    ended = sum([len(event.elements) for event in events if isinstance(event, ElementsKilled)])
    return len(events) * OF_EVENT + ended * OF_ELEMENT + COPIES * said + attached + _of_arrays(decided, specs)


def _of_arrays(decided: Decided, specs: Mapping[int, Spec]) -> int:
    """Bytes of the long texts that the elements of new arrays have in lsb.acct, each in its own line."""
    arrays = {event.key: event for event in decided.events if isinstance(event, JobSubmitted) and event.indices}
    if not arrays:
        return 0
    added = {event.spec: event.value for event in decided.events if isinstance(event, SpecAdded)}
    size = 0
    for key, text in decided.texts:
        if event := arrays.get(key):
            spec = added.get(event.spec) or specs[event.spec]
            size += len(event.indices or ()) * max(0, _in_line(text, spec, event) - USUAL)
    return size


def _in_line(text: JobText, spec: Spec, event: JobSubmitted) -> int:
    values = [getattr(text, name) for name in text.__struct_fields__ if name != "script"]
    values += [event.name, event.depend and event.depend.text, spec.resreq, spec.resreq, spec.resize_command, *spec.hosts]
    return sum([min(len(value), MOST_TEXT) for value in values if isinstance(value, str)])

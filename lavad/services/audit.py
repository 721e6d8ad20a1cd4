"""What the audit file says: who asked the master for what, from where, and with which answer.

Entries are made of every refusal, of every ask that only administrators have, of what administrators do to jobs, groups and
reservations, and of each change of the configuration. Rule: of an ask only the fields in ``SHOWN`` appear, so that no command,
script, environment or message does. A user whose refusals come too fast gets one entry that counts them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TypeGuard

import msgspec

from lavad.core.lang import asks
from lavad.core.lang.asks import Caller
from lavad.core.lang.token_ask import ListTokens, RevokeTokens, Token
from lavad.core.site.conf import Conf
from lavad.core.site.rights import is_admin
from proto.answers import Answer, Result

Entry = dict[str, object]

SHOWN = (
    "jobs", "job", "name", "hosts", "queue", "queues", "group", "users", "what", "verb", "state", "states", "signal", "close",
    "open", "force", "afresh", "now", "done", "kill", "hold", "top", "gpus", "place", "limit", "slots", "begin", "end", "window",
    "seconds", "period", "comment", "restart_of", "until", "follow", "ids", "user", "host", "app",
    "migrate", "kind", "every",
)  # fmt: skip
_ALWAYS = (
    asks.Hosts, asks.Gpus, asks.Queues, asks.Reconfig, asks.Lease, asks.Perfmon, asks.Run,
    asks.AddReservation, asks.ChangeReservation, asks.DropReservation, Token, RevokeTokens,
)  # fmt: skip
"""Asks of administrators (who else asks is refused, or uses a right that the site gave), and what tokens there are and were."""
_OF_USERS = (asks.Query, asks.Wait, asks.Changes, asks.Judge, asks.Attach, asks.Submit, asks.Bulk, ListTokens)
"""Nothing special when an administrator asks it: they show, wait, or concern the caller's own jobs."""
LONGEST, MOST = 300, 20
"""Characters of a text, and items of a list, that are shown."""
BURST, PER_SECOND = 20, 1.0
"""Refusals of a user that have entries of their own."""
USERS = 10_000
FLUSH = 10.0


class _Refusals:
    """How many refusals of a user may still have entries, and those that had none."""

    __slots__ = ("at", "left", "more")

    def __init__(self, at: float) -> None:
        self.at = at
        self.left = float(BURST)
        self.more: Counter[tuple[str, str, str]] = Counter()
        """(host, ask, text) to a number."""


class Audit:
    """``write`` takes an entry and must not block; ``conf`` gives the configuration in force."""

    def __init__(self, write: Callable[[Entry], None], conf: Callable[[], Conf], clock: Callable[[], float]) -> None:
        self._write = write
        self._conf = conf
        self._clock = clock
        self._refusals: OrderedDict[str, _Refusals] = OrderedDict()

    def answered(self, ask: asks.Ask, caller: Caller, answer: Answer) -> None:
        """An ask that was not refused as a whole; what was refused to single jobs of it is an entry too."""
        results = answer.get("results", [])
        refused = [row for row in results if not row.get("ok")]
        if refused:
            named = [_name_of(row) for row in refused]
            whose: Entry = {"jobs_refused": len(named) if isinstance(ask, asks.Bulk) else _short(named)}
            self._refused(ask, caller, str(refused[0].get("why", "")), whose)
        if len(refused) == len(results) and results:
            return
        if isinstance(ask, _ALWAYS) or (not isinstance(ask, _OF_USERS) and administers(self._conf(), caller)):
            if isinstance(ask, asks.Perfmon) and ask.what == "view":
                return
            done = {"done": _short([_name_of(row) for row in results if row.get("ok")])} if results else {}
            self._put(caller, ask, {"answer": "ok", **done})

    def refused(self, ask: asks.Ask | None, caller: Caller, text: str) -> None:
        """An ask that was refused; None: one that was not understood."""
        self._refused(ask, caller, text, {})

    def host_refused(self, host: str, address: str, text: str) -> None:
        """A host that was not let in."""
        self._refused(None, Caller(user="", uid=-1, host=host), text, {"ask": "session", "address": address})

    def configured(self, caller: Caller | None, why: str, changes: Iterable[tuple[str, str, str]]) -> None:
        """Another configuration is in force; ``changes``: parameter, old and new value. None: by the master itself."""
        found = [list(change) for change in changes]
        if not found and caller is None:
            return
        more = {"more_changes": len(found) - MOST * 10} if len(found) > MOST * 10 else {}
        who = caller or Caller(user="", uid=-1, host="")
        self._put(who, None, {"ask": "configuration", "why": why, "changes": found[: MOST * 10], **more, "answer": "ok"})

    async def run(self) -> None:
        """Write the sums of refusals that had no entries, from time to time."""
        while True:
            await asyncio.sleep(FLUSH)
            self.flush()

    def flush(self) -> None:
        """Write the sums of all users, and forget users who were not refused lately."""
        for user, refusals in list(self._refusals.items()):
            self._sum_up(user, refusals)
            if self._clock() - refusals.at > BURST / PER_SECOND:
                del self._refusals[user]

    def _refused(self, ask: asks.Ask | None, caller: Caller, text: str, more: Entry) -> None:
        now = self._clock()
        refusals = self._refusals.get(caller.user)
        if refusals is None:
            if len(self._refusals) >= USERS:
                self._sum_up(*self._refusals.popitem(last=False))
            refusals = self._refusals[caller.user] = _Refusals(now)
        refusals.left = min(float(BURST), refusals.left + max(0.0, now - refusals.at) * PER_SECOND)
        refusals.at = now
        if refusals.left >= 1.0:
            refusals.left -= 1.0
            self._put(caller, ask, {**more, "refused": text[:LONGEST]})
            return
        key = (caller.host, str(more.get("ask", _kind(ask))), text[:LONGEST])
        refusals.more[key if key in refusals.more or len(refusals.more) < MOST else ("", "", "")] += 1

    def _sum_up(self, user: str, refusals: _Refusals) -> None:
        for (host, kind, text), count in refusals.more.items():
            same = {"host": host, "ask": kind, "refused": text} if kind else {"refused": "others"}
            self._write({"time": self._time(), "user": user, **same, "more_like_this": count})
        refusals.more.clear()

    def _put(self, caller: Caller, ask: asks.Ask | None, answer: Entry) -> None:
        entry: Entry = {"time": self._time(), "user": caller.user, "uid": caller.uid, "host": caller.host}
        if ask is not None and ask.uuid:
            entry["uuid"] = ask.uuid
        entry["ask"] = _kind(ask)
        if ask is not None:
            entry["object"] = described(ask)
        self._write(entry | answer)

    def _time(self) -> str:
        return datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")


def administers(conf: Conf, caller: Caller) -> bool:
    """Whether the caller is an administrator of the cluster, of a queue or of a user group."""
    named = [queue.administrators for queue in conf.queues] + [admins for _, admins in conf.params.user_group_admins]
    return is_admin(conf, caller) or any(caller.user in conf.groups_of_users.expand(admins) for admins in named if admins)


def described(ask: asks.Ask) -> Entry:
    """What an ask is about: its fields that may be shown and are set; of options the names alone."""
    found = _fields(ask)
    if isinstance(ask, asks.Query):
        found |= {"command": ask.command, "words": _short(list(ask.words))}
    if isinstance(ask, asks.Bulk):
        found["jobs"] = len(ask.jobs)
    if isinstance(ask, asks.Query | asks.Submit | asks.Bulk | asks.Modify) and ask.options:
        found["options"] = _short(sorted(map(str, ask.options)))
    return found


def _fields(record: object) -> Entry:
    found: Entry = {}
    if not _is_record(record):
        return found
    defaults = dict(zip(record.__struct_fields__[::-1], record.__struct_defaults__[::-1], strict=False))
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if name not in SHOWN or (value == defaults.get(name) and value in (None, "", 0, False)):
            continue
        if _is_record(value):
            found |= _fields(value)
        elif value != []:
            found[name] = _short(value)
    return found


def _is_record(value: object) -> TypeGuard[msgspec.Struct]:
    return isinstance(value, msgspec.Struct)


def _short(value: object) -> object:
    if isinstance(value, str):
        return value if len(value) <= LONGEST else value[:LONGEST] + "..."
    if isinstance(value, list | tuple):
        return [_short(item) for item in value[:MOST]] + ([f"{len(value) - MOST} more"] if len(value) > MOST else [])
    return value


def _name_of(row: Result) -> str:
    return row.get("id") or row.get("gpu") or row.get("host") or row.get("queue") or ""


def _kind(ask: asks.Ask | None) -> str:
    return str(type(ask).__struct_config__.tag) if ask is not None else "?"

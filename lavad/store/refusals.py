"""What users and the log are told of a store that refuses: the log has each reason once, and that it is over."""

from __future__ import annotations

import logging

from lavad.core.lang.asks import Faulty, Refused
from lavad.store.errors import RecordRefused, StoreAway, StoreFull, StoreRefused


def for_users(error: StoreRefused) -> str:
    """What the database said names hosts and accounts, and is for the log, but for what is wrong with a user's own record."""
    match error:
        case RecordRefused():
            return f"The master's store refused the change: {error}"
        case StoreFull():
            return "The master's store is full"
        case StoreAway():
            return "The master's store cannot be reached"
    return "The master's store refused the request; lavad's log says why"


class Away(Refused):
    """The store cannot be reached, and nothing was done: who asks comes again by itself, as where there is no master."""


def refused(error: StoreRefused) -> Refused:
    """Why a request that the store has refused is refused."""
    why = for_users(error)
    match error:
        case RecordRefused():
            return Faulty(why)
        case StoreAway():
            return Away(why)
    return Refused(why)


class Refusals:
    """Of one thing that is tried again. ``refused`` and ``again`` are the lines, ``refused`` with the reason after a colon."""

    def __init__(self, log: logging.Logger, refused: str, again: str) -> None:
        self._log = log
        self._refused = refused
        self._again = again
        self._said: set[str] = set()
        self._last: StoreRefused | None = None

    def failed(self, error: StoreRefused) -> None:
        """The store has refused it."""
        why = str(error)
        self._last = error
        if why not in self._said:
            self._said.add(why)
            self._log.warning("%s: %s", self._refused, why)

    def worked(self) -> None:
        """The store has taken it."""
        self._last = None
        if self._said:
            self._said.clear()
            self._log.warning("%s", self._again)

    def notices(self) -> list[str]:
        """What users may know of it while it lasts: ``the master's store cannot be reached``."""
        if self._last is None:
            return []
        why = for_users(self._last)
        return [f"{why[0].lower()}{why[1:]}"]

"""Requests that wait for a turn of the engine: those of the master itself go first, then those of users in turn."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable, Sequence

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.lang.asks import Refused
from proto.answers import Answer

Decide = Callable[[Cluster, float], Decided]
Join = Callable[[Sequence[Answer]], Answer]
MOST_OF_USER, MOST_OF_MASTER = 200, 1000
"""Requests of one user, and of the master itself, in one turn."""


def key_of(user: str, uuid: str) -> str:
    """Under what the answer to an ask is kept: a user's uuid is their own, whoever else knows it; longer than any uuid."""
    if not user or not uuid:
        return uuid
    return "of " + hashlib.sha256(f"{user}\0{uuid}".encode(errors="replace")).hexdigest()


class Request:
    """Decisions for one caller, who waits for the answer; made after ``after``, if there is one.

    With ``join`` as many are made as a turn has time for, at least the first, and answered by what it makes of their answers.
    """

    __slots__ = ("after", "answer", "answered", "decides", "join", "user", "uuid")

    def __init__(
        self,
        decides: Sequence[Decide],
        uuid: str,
        user: str,
        after: asyncio.Future[list[Answer]] | None,
        join: Join | None = None,
    ) -> None:
        self.after = after
        self.user = user
        self.decides = decides
        self.uuid = uuid
        self.join = join
        self.answered: list[Answer] = []
        """Answers of decisions made in earlier turns."""
        self.answer: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()

    def end(self, answer: list[Answer] | Refused) -> None:
        """Answer the caller, who may have gone away."""
        if self.answer.done():
            return
        if isinstance(answer, Refused):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)


class Waiting:
    """Requests that wait for a turn, by user."""

    def __init__(self) -> None:
        self._of: dict[str, deque[Request]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def add(self, request: Request) -> None:
        """Add it behind the others of its user."""
        self._of.setdefault(request.user, deque()).append(request)

    def put_back(self, requests: Sequence[Request]) -> None:
        """Return what a turn had no time for to the front of the queues of their users, which go first next time."""
        first = {user: self._of.pop(user, deque()) for user in dict.fromkeys(request.user for request in requests)}
        for request in reversed(requests):
            first[request.user].appendleft(request)
        self._of = first | self._of

    def take(self) -> list[Request]:
        """Those of the next turn: of the master itself first, then one of each user in turn, as long as there are any."""
        own = self._of.pop("", deque())
        found = [own.popleft() for _ in range(min(MOST_OF_MASTER, len(own)))]
        for _ in range(MOST_OF_USER):
            if not self._of:
                break
            for user, queue in [*self._of.items()]:
                found.append(queue.popleft())
                if not queue:
                    del self._of[user]
        if own:
            self._of[""] = own
        return found

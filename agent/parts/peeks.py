"""bpeek: pieces of the output of jobs that are or were here, for the master."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine

from agent.launch.accounts import Accounts
from agent.launch.site import User
from agent.parts.table import PartTable
from agent.starter.protocol import answers, orders
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb
from proto.names import NoAnswer

MOST_KNOWN = 256


class Peeks:
    """``look_after`` runs a lookup beside the turns, ``poke`` makes a turn when it is over."""

    def __init__(
        self,
        table: PartTable,
        starter: Outgoing,
        accounts: Accounts,
        look_after: Callable[[Coroutine[None, None, None]], None],
        poke: Callable[[], None],
    ) -> None:
        self.answers: list[pb.PeekData] = []
        """What the master is to be sent."""
        self._known: dict[tuple[str, bool], tuple[User, str]] = {}
        """Who wrote where, by (uid, stderr), of parts that were looked at while they were here: their last output is asked for
        when they are gone."""
        self._table = table
        self._starter = starter
        self._accounts = accounts
        self._look_after = look_after
        self._poke = poke

    def found(self, data: answers.Data) -> None:
        """The starter has read it."""
        self.answers.append(pb.PeekData(id=data.id, data=data.data, size=data.size, error=data.error))

    def look(self, peek: pb.Peek) -> None:
        """Have a piece of a job's output read by the starter, as its user."""
        entry = self._table.find(peek.uid)
        path = peek.path
        if entry is None or entry.made is None:
            if path:
                self._look_after(self._later(peek))
            elif known := self._known.get((peek.uid, peek.stderr)):
                self._read(peek, *known)
            else:
                self.answers.append(pb.PeekData(id=peek.id, error="no output is here"))
            return
        if not path:
            path = (entry.where.stderr if peek.stderr else "") or entry.where.stdout
        where = entry.made.user, os.path.join(entry.folder(), path)
        self._known.pop((peek.uid, peek.stderr), None)
        self._known[peek.uid, peek.stderr] = where
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._read(peek, *where)

    async def _later(self, peek: pb.Peek) -> None:
        """Read a file of a job that is no longer here, once its user has been looked up."""
        user, why = None, f"user {peek.user} is not known here"
        try:
            user = await self._accounts.find(peek.user)
        except NoAnswer as error:
            why = f"user {peek.user} cannot be looked up now: {error}"
        if user is None:
            self.answers.append(pb.PeekData(id=peek.id, error=why))
        else:
            self._read(peek, user, peek.path)
        self._poke()

    def _read(self, peek: pb.Peek, user: User, path: str) -> None:
        self._starter.put(orders.Read(peek.id, user.account, path, peek.offset, peek.limit or 1 << 20))

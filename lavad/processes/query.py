"""The query process: applies committed events and renders the text of listings, of each user in turn.

Rule: what is short is answered at once, a plain list of many jobs frame by frame between other queries (``job_list``); what may
take long otherwise, or turns out to (jobs may have commands of a megabyte), is answered by a fork (``long_query``). Of those that
are not short, one of each user runs at a time; one whose reader is behind, a pager say, keeps nobody from the next.
"""

from __future__ import annotations

import select
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from lavad.collector import look_rarely
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import Event
from lavad.processes.followers import Followers
from lavad.processes.job_list import JobList
from lavad.processes.long_query import LongQuery
from lavad.processes.usage_history import UsageHistory
from lavad.queries.cost import FEW, is_list, is_short
from lavad.queries.frame.view import View
from lavad.queries.render import render
from lavad.replica import protocol as feed
from lavad.replica.replica import Ended, Replica
from lavad.replica.spawn import child_socket, set_title
from lavad.store.errors import StoreRefused, TooManyJobs
from proto.daemon.logs import indented

if TYPE_CHECKING:
    from lavad.store.read import Reader

PIECE = 64 * 1024
MOST_SHORT = 4 << 20
"""Characters of the answer to a short query."""
SHORT_TIME = 0.3
"""Seconds of CPU that it takes."""
MOST_LONG = 3
"""Long queries that run at a time."""
PATIENCE = 1.0
"""Seconds without progress after which a long query waits for its reader, and counts no more among those that run."""
MOST_BEHIND, BEHIND_EACH = 16, 4
"""Of them at a time, of all users and of one; where there is another, the first of them is ended."""
SOON = 0.5
"""Seconds without a query after which what reads the store is loaded: a master that starts is asked before that."""
FAILED = "internal error, see the log of lavad"
SLOW = "Output dropped: the client reads too slowly"
AWAY = "The master's store cannot be read now, try again later"


class NotShort(Exception):
    """A query takes longer than a short one may."""


def open_store(replica: Replica) -> Reader:
    """What reads the store. Raises StoreRefused."""
    from lavad.store.read import Reader

    return Reader.open(replica.site.database)


def answers(
    replica: Replica,
    opened: Callable[[], Reader],
    ask: feed.Ask,
    history: UsageHistory | None = None,
    checked: Callable[[], None] | None = None,
) -> Iterator[feed.Answer]:
    """One query, rendered piece by piece; ``opened`` is called if it reads the store. Raises NotShort if ``checked`` does, and
    TooManyJobs if the store's reader does.
    """
    view = View(
        cluster=replica.cluster,
        soft=replica.soft,
        opened=opened,
        master=replica.site.master,
        lsf=replica.site.lsf,
        samples=history.of if history is not None else None,
        checked=checked,
    )
    pieces: list[tuple[str, str]] = []
    size, code = 0, 0
    try:
        for kind, text in render(view, ask.query, ask.caller, ask.now):
            if kind == "exit":
                code = int(text)
                continue
            pieces.append((kind, text))
            size += len(text)
            if size >= PIECE:
                yield feed.Answer(number=ask.number, pieces=pieces)
                pieces, size = [], 0
    except StoreRefused as error:
        yield _away(ask, error)
        return
    except (NotShort, TooManyJobs):
        raise
    except MemoryError:
        pieces, code = [("err", f"{ask.query.command}: The query needs too much memory\n")], 255
    except Exception as error:
        # a query that fails must not end the process that answers all others
        print(f"query {ask.query.command} {ask.query.options} {ask.query.words} failed: {error!r}", file=sys.stderr)  # noqa: T201
        print(indented(traceback.format_exc()), file=sys.stderr)  # noqa: T201
        pieces.append(("err", f"{ask.query.command}: {FAILED}\n"))
        code = 255
    yield feed.Answer(number=ask.number, pieces=pieces, exit=code)


def _away(ask: feed.Ask, error: StoreRefused) -> feed.Answer:
    print(f"query {ask.query.command}: {error}", file=sys.stderr)  # noqa: T201
    return feed.Answer(number=ask.number, pieces=[("err", f"{ask.query.command}: {AWAY}\n")], exit=255)


class Queries:
    """All queries that wait, by user, and those that are not short and run."""

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._reader: Reader | None = None
        self._loaded = False
        """Whether what reads the store is loaded."""
        self._short: dict[str, deque[feed.Ask]] = {}
        self._long: dict[str, deque[feed.Ask]] = {}
        self._running: dict[int, LongQuery | JobList] = {}
        self._followers = Followers(time.monotonic)
        self._history = UsageHistory()
        replica.heard = self._heard
        replica.noted = self._history.note

    def _heard(self, cluster: Cluster, events: list[Event]) -> None:
        self._followers.happened(cluster, events)
        self._history.forget(cluster.finished)

    def serve(self) -> None:
        """Until the master ends; raises Ended."""
        while True:
            self._wait()
            for ask in self._replica.take_asks():
                if ask.query.command == "api" and ask.query.words == ["events"]:
                    self._followers.follow(ask)
                    continue
                short = is_short(self._replica.cluster, ask.query, ask.caller)
                (self._short if short else self._long).setdefault(ask.caller.user, deque()).append(ask)
            for number in self._replica.take_dropped():
                self._drop(number)
            for number, count in self._replica.take_taken():
                self._followers.taken(number, count)
                if number in self._running:
                    self._running[number].taken(count)
            self._followers.send(self._replica.cluster.version, self._replica.send)
            self._pass_on()
            self._start_long()
            self._answer_one()

    def _wait(self) -> None:
        """Until the master or a long query says something, a query is due, or one has run too long."""
        poll = select.poll()
        poll.register(self._replica.link, select.POLLIN)
        ready = bool(self._short)
        for query in self._running.values():
            if isinstance(query, LongQuery):
                poll.register(query.socket, select.POLLIN)
            else:
                ready = ready or query.pace.is_ready
        now = time.monotonic()
        ends = [query.deadline - now for query in self._running.values()]
        if self._long:
            held = [query.pace.held_since + PATIENCE - now for query in self._running.values()]
            ends += [left for left in held if 0.0 < left <= PATIENCE]
        if (due := self._followers.due()) is not None:
            ends.append(due)
        timeout = 0.0 if ready else max(0.0, min(ends)) if ends else None if self._loaded else SOON
        if not poll.poll(None if timeout is None else int(timeout * 1000) + bool(timeout)) and timeout == SOON:
            import lavad.store.read  # noqa: F401

            self._loaded = True
        self._replica.wait(0)

    def _drop(self, number: int) -> None:
        self._followers.drop(number)
        if number in self._running:
            self._running.pop(number).end()
        for waiting in (self._short, self._long):
            for user, asks in [*waiting.items()]:
                waiting[user] = deque(ask for ask in asks if ask.number != number)
                if not waiting[user]:
                    del waiting[user]

    def _pass_on(self) -> None:
        """Send on what those that run have rendered, and end those that have run too long."""
        for number, query in [*self._running.items()]:
            frames, ended = query.read()
            for frame in frames:
                self._replica.send_frame(frame)
            why = ""
            if ended:
                why = "" if query.gone() else FAILED
            elif time.monotonic() >= query.deadline:
                query.end()
                seconds = self._replica.cluster.conf.params.lava_query_time
                why = f"The query took longer than {seconds} seconds (LAVA_QUERY_TIME) and was ended"
            else:
                continue
            self._over(number, why)

    def _over(self, number: int, why: str) -> None:
        """It runs no more; ``why``: it is not whole."""
        query = self._running.pop(number)
        if why:
            text = f"{query.ask.query.command}: {why}\n"
            self._replica.send(feed.Answer(number=number, pieces=[("err", text)], exit=255))

    def _start_long(self) -> None:
        busy = [query.ask.caller.user for query in self._running.values() if not _is_behind(query)]
        for user in [user for user in self._long if user not in busy][: max(0, MOST_LONG - len(busy))]:
            self._make_room(user)
            ask = _next(self._long, user)
            limit = self._replica.cluster.conf.params.lava_query_time
            if is_list(self._replica.cluster, ask.query) and not self._replica.site.lsf.get("LSB_BJOBS_FORMAT"):
                self._start_list(ask, limit)
            else:
                self._running[ask.number] = LongQuery(ask, self._render_in_child, limit)

    def _make_room(self, user: str) -> None:
        """End the one that was begun first of those that wait for their readers, where the user, or all, have too many."""
        behind = [number for number, query in self._running.items() if _is_behind(query)]
        own = [number for number in behind if self._running[number].ask.caller.user == user]
        crowd = own if len(own) >= BEHIND_EACH else behind if len(behind) >= MOST_BEHIND else []
        if crowd:
            self._running[crowd[0]].end()
            self._over(crowd[0], SLOW)

    def _start_list(self, ask: feed.Ask, limit: float) -> None:
        """Settle which jobs a list is of, and send the first of them."""
        # that this is the query that the process died with is known up to here alone: later others go on beside it
        self._replica.send(feed.Begun(number=ask.number))
        self._running[ask.number] = JobList(ask, answers(self._replica, self._open, ask, self._history), limit)
        self._pass_on()
        self._replica.send(feed.Begun(number=0))

    def _render_in_child(self, ask: feed.Ask, send: Callable[[feed.Answer], None]) -> None:
        # connections to a database are not shared with the parent
        for piece in answers(self._replica, partial(open_store, self._replica), ask, self._history):
            send(piece)

    def _answer_one(self) -> None:
        """The next short query, of the user whose last one is longest ago; it becomes a long one where it is none after all."""
        if not self._short:
            return
        ask = _next(self._short, next(iter(self._short)))
        self._replica.send(feed.Begun(number=ask.number))
        until, size, late = time.thread_time() + SHORT_TIME, 0, False

        def checked() -> None:
            """With one piece that comes late it may be whole: to make that again would help nobody."""
            nonlocal late
            if late:
                raise NotShort
            late = time.thread_time() > until

        pieces: list[feed.Answer] = []
        try:
            for piece in answers(self._replica, self._open_for_short, ask, self._history, checked):
                pieces.append(piece)
                size += sum([len(text) for _, text in piece.pieces])
                if piece.exit is None and size > MOST_SHORT:
                    raise NotShort
        except (NotShort, TooManyJobs):
            self._replica.send(feed.Begun(number=0))
            self._long.setdefault(ask.caller.user, deque()).append(ask)
            self._start_long()
            return
        for piece in pieces:
            self._replica.send(piece)

    def _open_for_short(self) -> Reader:
        from lavad.store.read import BoundedReader

        return BoundedReader(self._open().engine, FEW)

    def _open(self) -> Reader:
        if self._reader is None:
            self._reader = open_store(self._replica)
        return self._reader


def _is_behind(query: LongQuery | JobList) -> bool:
    return time.monotonic() >= query.pace.held_since + PATIENCE


def _next(waiting: dict[str, deque[feed.Ask]], user: str) -> feed.Ask:
    """The user's next query; the user's others go behind all other users'."""
    asks = waiting.pop(user)
    ask = asks.popleft()
    if asks:
        waiting[user] = asks
    return ask


def main() -> int:
    """Entry point: the socket to the master is file descriptor 3."""
    set_title("lava-query")
    look_rarely()
    try:
        Queries(Replica(child_socket())).serve()
    except (Ended, KeyboardInterrupt):
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())

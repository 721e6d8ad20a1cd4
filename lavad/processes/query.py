"""The query process: folds what the master commits and renders the text of listings, where the data is."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable

from lavad.core.events import Event
from lavad.core.job.job import Job
from lavad.queries.frame.view import View
from lavad.queries.render import render
from lavad.replica import protocol as feed
from lavad.replica.replica import Ended, Replica
from lavad.replica.spawn import child_socket, set_title
from lavad.store.read import Find, Reader

PIECE = 64 * 1024


class StoreView:
    """The store as queries read it."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.text_of = reader.text_of
        self.texts = reader.texts
        self.env = reader.env
        self.specs = reader.specs
        self.finished_array = reader.finished_array
        self.finished_keys = reader.finished_keys
        self.finished_marks = reader.finished_marks
        self.events_of = reader.events_of
        self.events_of_many = reader.events_of_many
        self.sums = reader.sums
        self.pages = reader.pages
        self.site_events = reader.site_events

    def events_between(self, begin: float, end: float) -> list[tuple[int, Event]]:
        """All events of a time, in order."""
        return self._reader.events_between(begin, end)

    def finished_jobs(
        self,
        *,
        keys: Iterable[int] | None = None,
        job: int | None = None,
        user: str | None = None,
        queue: str | None = None,
        name: str | None = None,
        project: str | None = None,
        since: float | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """Finished jobs; newest first where limited, else by id."""
        named = tuple(keys) if keys is not None else None
        if job is not None:
            named = (*(named or ()), job)
        find = Find(
            keys=named,
            user=user,
            queue=queue,
            name=name,
            project=project,
            since=since,
            limit=limit,
            newest_first=limit is not None,
        )
        return self._reader.finished_jobs(find)


def answer(replica: Replica, reader: StoreView, ask: feed.Ask) -> None:
    """Render one query and send it piece by piece."""
    view = View(
        cluster=replica.cluster,
        soft=replica.soft,
        reader=reader,
        master=replica.site.master,
        lsf=replica.site.lsf,
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
                replica.send(feed.Answer(number=ask.number, pieces=pieces))
                pieces, size = [], 0
    except Ended:
        raise
    except Exception as error:
        # one query that cannot be rendered must not end the process that answers all others
        print(f"query {ask.query.command} {ask.query.options} {ask.query.words} failed: {error!r}", file=sys.stderr)  # noqa: T201
        traceback.print_exc()
        pieces.append(("err", f"{ask.query.command}: internal error, see the log of lavad\n"))
        code = 255
    replica.send(feed.Answer(number=ask.number, pieces=pieces, exit=code))


def main() -> int:
    """Entry point: the socket to the master is file descriptor 3."""
    set_title("lava-query")
    replica = Replica(child_socket())
    reader: StoreView | None = None
    try:
        while True:
            replica.wait(None)
            while replica.asks:
                if reader is None:
                    reader = StoreView(Reader.open(replica.site.database))
                answer(replica, reader, replica.asks.popleft())
    except (Ended, KeyboardInterrupt):
        return 0


if __name__ == "__main__":
    sys.exit(main())

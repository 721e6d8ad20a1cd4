"""The query process: applies committed events and renders the text of listings."""

from __future__ import annotations

import sys
import traceback

from lavad.queries.frame.view import View
from lavad.queries.render import render
from lavad.replica import protocol as feed
from lavad.replica.replica import Ended, Replica
from lavad.replica.spawn import child_socket, set_title
from lavad.store.read import Reader

PIECE = 64 * 1024


def answer(replica: Replica, reader: Reader, ask: feed.Ask) -> None:
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
        # a query that fails must not end the process that answers all others
        print(f"query {ask.query.command} {ask.query.options} {ask.query.words} failed: {error!r}", file=sys.stderr)  # noqa: T201
        traceback.print_exc()
        pieces.append(("err", f"{ask.query.command}: internal error, see the log of lavad\n"))
        code = 255
    replica.send(feed.Answer(number=ask.number, pieces=pieces, exit=code))


def main() -> int:
    """Entry point: the socket to the master is file descriptor 3."""
    set_title("lava-query")
    replica = Replica(child_socket())
    reader: Reader | None = None
    try:
        while True:
            replica.wait(None)
            while replica.asks:
                if reader is None:
                    reader = Reader.open(replica.site.database)
                answer(replica, reader, replica.asks.popleft())
    except (Ended, KeyboardInterrupt):
        return 0


if __name__ == "__main__":
    sys.exit(main())

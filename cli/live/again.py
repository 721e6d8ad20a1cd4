"""``bjobs --watch``: the listing again whenever the caller's jobs have changed, until Ctrl-C (exit status 130).

At a terminal it is drawn over; elsewhere the lines that are new or different follow the previous ones. The master tells
when something has happened to the caller's own jobs; where there may be others in it, it is made again at intervals, too.
"""

from __future__ import annotations

import os
import signal
import time

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, Refused
from cli.live.listings import harmless
from cli.live.screen import Piece, Screen, has_colours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options

NOTHING = ("No ", "Job <")
"""How a listing begins that has no job to show."""
LONGEST = 30.0
"""Seconds until the listing is made again although nothing has happened: times and use are in it."""
OTHERS = 5.0
"""The same of a listing that may have jobs of other users."""
OF_OTHERS = ("u", "G")
"""Options with which it may."""
PAUSE, SHARE = 1.0, 10
"""Between two looks at least so many seconds, and so many times what the last one took: the cluster has other work."""


def longest(options: Options, words: list[str]) -> float:
    """Seconds until the listing is made again although nothing has happened to the caller's own jobs."""
    return OTHERS if words or any(name in options for name in OF_OTHERS) else LONGEST


class Listing:
    """What is asked again and again."""

    def __init__(self, context: Context, frame: dict[str, object], seconds: float, quiet: int) -> None:
        silent = Context([], context.cwd, context.environ, stderr=quiet)
        self._client = Client(silent, read_conf(context))
        self._frame = frame
        self._longest = seconds
        self._cursor = ""
        self.took = 0.0

    def look(self) -> list[str]:
        """The lines now. Raises Refused where it cannot be asked so."""
        begun = time.monotonic()
        try:
            text = self._client.text_of(self._frame)
        except Refused as refusal:
            text = str(refusal)
            if self._frame["words"] or not text.startswith(NOTHING):
                raise
        self.took = time.monotonic() - begun
        return [harmless(line) for line in text.splitlines()]

    def await_news(self) -> None:
        """Wait until something may have changed."""
        time.sleep(max(PAUSE, SHARE * self.took))
        ask = {"ask": "changes", "every": True, "after": self._cursor, "wait": self._longest}
        self._cursor = str(self._client.ask(ask)["after"])


def watch(context: Context, frame: dict[str, object], options: Options, words: list[str]) -> int:
    """Until Ctrl-C. Raises Fail where the listing is refused."""
    context.need_own_process()
    if "json" in options:
        raise Fail("bjobs: -json and --watch cannot be given together")
    with open(os.devnull, "wb") as nothing:
        listing = Listing(context, frame, longest(options, words), nothing.fileno())
        lines = listing.look()
        if has_colours({**context.environ, "NO_COLOR": ""}, context.stdout):
            return _drawn(context, listing, lines)
        before: list[str] = []
        while True:
            known = set(before)
            context.out("".join(f"{line}\n" for line in lines if line not in known))
            before = lines
            listing.await_news()
            lines = listing.look()


def _drawn(context: Context, listing: Listing, lines: list[str]) -> int:
    with Screen(context.stdin, context.stdout, context.environ) as screen:

        def draw(*_: object) -> None:
            most = screen.size.lines - 1
            shown = lines if len(lines) <= most else [*lines[: most - 1], f"... and {len(lines) - most + 1} more lines"]
            at = time.strftime("%H:%M:%S", time.localtime())
            screen.draw([[Piece(line)] for line in shown] + [[Piece(f"{at}  Ctrl-C ends", "dim")]])

        signal.signal(signal.SIGWINCH, draw)
        while True:
            draw()
            listing.await_news()
            lines = listing.look()

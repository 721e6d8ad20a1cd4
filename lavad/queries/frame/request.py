"""One query on its way through a command: what is asked, by whom, and the view it is answered from."""

from __future__ import annotations

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Caller, Query
from lavad.queries.frame.options import Options
from lavad.queries.frame.view import View
from proto.commands import COMMANDS

Shown = tuple[str, str]
"""("out", text), ("err", text), ("as_is", text) or ("exit", status)."""


class Request:
    """What every command gets."""

    def __init__(self, view: View, query: Query, caller: Caller, now: float) -> None:
        self.view = view
        self.query = query
        self.caller = caller
        self.now = now
        self.words = list(query.words)
        """The arguments that are no options."""

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self.view.cluster

    def options(self) -> Options:
        """The options, checked; raises Refused."""
        return Options(COMMANDS[self.query.command], self.query.options)


def out(text: str) -> Shown:
    """A piece of stdout."""
    return "out", text


def as_is(text: str) -> Shown:
    """A piece of stdout for the user whose own text it is: nothing in it is replaced."""
    return "as_is", text


def err(text: str) -> Shown:
    """A line of stderr."""
    return "err", text + "\n"


def leave(status: int) -> Shown:
    """The exit status (the largest of several holds)."""
    return "exit", str(status)

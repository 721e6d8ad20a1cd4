"""One query on its way through a command: the view it is answered from, its caller, words and options.

Rule: an option that the row of its command in ``proto/commands.py`` does not have is refused by its name. Flags may be
written together (``-wa``, ``-aJ NAME``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Caller, OptionValue, Query, Refused
from lavad.core.lang.bounds import MAX_LINE
from lavad.core.lang.when import WhenError, parse_interval
from lavad.local_time import local_time
from lavad.queries.frame.view import View
from proto.commands import COMMANDS, Command

_FILES = ("f", "m")
"""Options in whose place the command sends what is in a file."""


class Options:
    """A query's options. Raises Refused for one that the command has not, and for a value that is missing."""

    def __init__(self, row: Command, given: Mapping[str, OptionValue]) -> None:
        self.command = row.name
        flags, valued = row.options_sent()
        self._flags = frozenset(flags)
        self._valued = frozenset(valued)
        self._loose = frozenset(row.loose.split())
        self._values: dict[str, OptionValue] = {}
        for name, value in given.items():
            self._take(name, value)

    def _take(self, name: str, value: OptionValue) -> None:
        if value is False:
            return
        if isinstance(value, str) and len(value) > MAX_LINE and name not in _FILES:
            raise Refused(f"{self.command}: option -{name} is too long (at most {MAX_LINE})")
        if name in self._flags or name in self._loose:
            self._values[name] = value
        elif name in self._valued:
            if value is True:
                raise Refused(f"{self.command}: option requires an argument -- '{name}'")
            self._values[name] = value
        elif len(name) > 1 and self._glued(name, value is True):
            for letter in name[:-1]:
                self._values[letter] = True
            self._take(name[-1], value)
        else:
            raise Refused(f"{self.command}: option -{name} is not supported by lava")

    def _glued(self, name: str, alone: bool) -> bool:
        known = self._flags | self._loose
        last = known if alone else self._valued | self._loose
        return all(letter in known for letter in name[:-1]) and name[-1] in last

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def any(self, *names: str) -> bool:
        """Whether one of these is given."""
        return any(name in self._values for name in names)

    def find(self, name: str) -> str | None:
        """An option's argument, the last one where it is repeated; None if it is not given or has none."""
        value = self._values.get(name)
        if isinstance(value, list):
            value = value[-1] if value else None
        return value if isinstance(value, str) else None

    def text(self, name: str) -> str:
        """An option's argument, "" if it is not given."""
        return self.find(name) or ""

    def words(self, name: str) -> list[str]:
        """The words of an option's argument."""
        return self.text(name).split()


Shown = tuple[str, str]
"""("out", text), ("err", text), ("as_is", text) or ("exit", status)."""


class Request:
    """What every command renders from."""

    def __init__(self, view: View, query: Query, caller: Caller, now: float) -> None:
        self.view = view
        self.query = query
        self.caller = caller
        self.now = now
        self.words = list(query.words)
        """The arguments that are no options."""

    @property
    def cluster(self) -> Cluster:
        """The view's cluster."""
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


_LAST = 0.999999
"""The part of the last second of a period that is in it, in microseconds as times have them: the next second is not."""


def read_period(request: Request, text: str) -> tuple[float, float]:
    """``t0,t1`` of -T, -C, -S, -D as seconds, up to where the next second begins; raises Refused."""
    local = local_time(request.now)
    try:
        begin, end = parse_interval(text, local)
    except WhenError:
        raise Refused(f"{text[:80].removesuffix(',.')}: Bad time specification") from None
    return (begin.timestamp() if begin is not None else 0.0), (end.timestamp() + _LAST if end is not None else request.now)


def each_job(request: Request, command: str, tell: Callable[[Request, str], Iterator[Shown]]) -> Iterator[Shown]:
    """What ``tell`` says of each job that is named, once, an empty line between two; what it refuses of one holds up no other."""
    request.options()
    if not request.words:
        raise Refused(f"{command}: name a job")
    for at, word in enumerate(dict.fromkeys(request.words)):
        if at:
            yield out("\n")
        try:
            yield from tell(request, word)
        except Refused as refused:
            yield err(refused.text)
            yield leave(refused.exit_code)

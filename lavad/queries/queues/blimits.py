"""The limits of lsb.resources: blimits has how much of each is used now, bresources how they are configured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from config.model.cluster import Limit
from lavad.core.cluster.limit_sums import Sum
from lavad.core.lang.asks import Refused
from lavad.core.rules.ledger import UNLIMITED, Ledger
from lavad.core.rules.limits import Limits
from lavad.core.site.limit_book import Consumer, LimitBook
from lavad.queries.frame.request import Request, Shown, err, leave, out
from lavad.queries.queues import guarantees

COLUMNS = ("NAME", "USERS", "QUEUES", "HOSTS", "PROJECTS", "SLOTS", "MEM", "JOBS")
_OF_COLUMNS = ("u", "q", "m", "P")
"""The options that choose by users, queues, hosts and projects."""
_NOBODY = ("", "", "", "")


class _Line(NamedTuple):
    """``cells``: column to what stands there, ``USED/LIMIT``, or the limit alone as it is configured."""

    limit: Limit
    whose: Consumer
    host: str
    cells: dict[str, str]


def show(request: Request) -> Iterator[Shown]:
    """blimits: a line for each limit, or where it is per user or host for each of these that uses it.

    As in LSF slots, memory and jobs come first, all other resources in a second table with a column for each.
    """
    options = request.options()
    conf = request.cluster.conf
    only = options.words("n")
    chosen = [(at, limit) for at, limit in enumerate(conf.limits) if not only or limit.name in only]
    lines: list[_Line] = []
    book = LimitBook(conf)
    limits = Limits(book, Ledger(request.cluster))
    used = limits.used()
    for at, limit in chosen:
        sums = {key[1:]: value for key, value in used.items() if key[0] == at}
        if "c" in options or (not sums and "a" in options):
            lines.append(_Line(limit, _NOBODY, "", _configured(limit)))
        if "c" not in options:
            lines += [_Line(limit, *key, _used(limits, limit, key[1], sum_)) for key, sum_ in sorted(sums.items())]
    for column, option in enumerate(_OF_COLUMNS, 1):
        if option in options:
            names = [(name, *(book.conf.groups_of_users.of(name) if option == "u" else ())) for name in options.words(option)]
            lines = [line for line in lines if _is_about(_whose(line)[column].split(), names)]
    if "A" in options:
        lines = [line for line in lines if _is_about(_app(line).split(), [(name,) for name in options.words("A")])]
    if "R" in options:
        lines = [line for line in lines if not _resources(line.limit).isdisjoint(options.words("R"))]
    if options.any("p", "Lp"):
        lines = []  # limits of licence projects: there is no License Scheduler
    if not lines:
        yield out("No resource limit found.\n" if not chosen else "No resource usage found.\n")
        return
    title = "CONFIGURED" if "c" in options else "INTERNAL"
    yield from _table(title, COLUMNS, [(*_whose(line), *_cells(line, COLUMNS[5:])) for line in lines])
    others = [line for line in lines if line.limit.resources]
    found = tuple(dict.fromkeys(name for line in others for name, _ in line.limit.resources))
    if found:
        title = "CONFIGURED EXTERNAL" if "c" in options else "EXTERNAL"
        rows = [(*_whose(line), *_cells(line, found)) for line in others]
        yield out("\n")
        yield from _table(title, (*COLUMNS[:5], *found), rows)


def _is_about(cell: list[str], wanted: list[tuple[str, ...]]) -> bool:
    """Whether a cell names one of these, or all but others; each with the groups that it is in."""
    return any(
        any(name in cell for name in ("all", *names)) and not any(f"~{name}" in cell for name in names) for names in wanted
    )


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[Shown]:
    yield out(f"{title} RESOURCE LIMITS:\n\n")
    for row in (columns, *rows):
        yield out(("".join(f"{cell:<12} " for cell in row)).rstrip() + "\n")


def _whose(line: _Line) -> tuple[str, ...]:
    limit, (user, queue, project, _), host, _ = line
    return (
        limit.name,
        user or _words(limit.users, limit.per_user),
        queue or _words(limit.queues, limit.per_queue),
        host or _words(limit.hosts, limit.per_host),
        project or _words(limit.projects, limit.per_project),
    )


def _app(line: _Line) -> str:
    limit, (*_, app), _, _ = line
    return app or _words(limit.apps, limit.per_app)


def _resources(limit: Limit) -> set[str]:
    """What a limit limits."""
    own = (("slots", limit.slots), ("slots", limit.slots_per_processor), ("mem", limit.mem), ("jobs", limit.jobs))
    return {name for name, most in (*own, *limit.resources) if most is not None}


def _cells(line: _Line, columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(line.cells.get(column, "-") for column in columns)


def _used(limits: Limits, limit: Limit, host: str, used: Sum) -> dict[str, str]:
    """What is used of each, and how much there is on this host: percentages in MB, slots of all its processors (LSF)."""
    cells = {}
    slots = limits.most_slots(limit, host)
    if slots is not None:
        cells["SLOTS"] = f"{used.slots}/{slots}"
    if limit.jobs is not None:
        cells["JOBS"] = f"{used.jobs}/{limit.jobs}"
    for name, most in limits.caps(limit, host).items():
        here = round(most) if name in limit.percent else most
        cells[_column(name)] = f"{_plain(used.amounts.get(name, 0.0))}/{'-' if most >= UNLIMITED else _plain(here)}"
    return cells


def _configured(limit: Limit) -> dict[str, str]:
    cells = {}
    if limit.slots is not None:
        cells["SLOTS"] = f"{limit.slots}"
    if limit.slots_per_processor is not None:
        each = f"{_plain(limit.slots_per_processor)}/CPU"
        cells["SLOTS"] = f"{cells['SLOTS']},{each}" if "SLOTS" in cells else each
    if limit.jobs is not None:
        cells["JOBS"] = f"{limit.jobs}"
    return cells | {_column(name): _with_unit(limit, name, amount) for name, amount in _amounts(limit)}


def _amounts(limit: Limit) -> tuple[tuple[str, float], ...]:
    return limit.resources if limit.mem is None else (("mem", limit.mem), *limit.resources)


def _column(resource: str) -> str:
    return "MEM" if resource == "mem" else resource


def _with_unit(limit: Limit, name: str, amount: float) -> str:
    return f"{_plain(amount)}{'%' if name in limit.percent else ''}"


def _plain(amount: float) -> str:
    """Without an exponent, which no program that reads the table expects."""
    return f"{amount:.12g}"


def _words(names: tuple[str, ...], each: bool = False) -> str:
    if not names:
        return "each" if each else "-"
    return " ".join(names)


def show_resources(request: Request) -> Iterator[Shown]:
    """bresources: a section for each limit, or with -g what is guaranteed."""
    options = request.options()
    if options.any("s", "p"):
        raise Refused("bresources: only -g is supported by lava")
    if "g" in options:
        yield from guarantees.show_pools(request)
        return
    limits = {limit.name: limit for limit in request.cluster.conf.limits}
    for word in request.words or limits:
        if word in limits:
            yield out(_section(limits[word]))
        else:
            yield err(f"{word}: No such limit")
            yield leave(255)


def _section(limit: Limit) -> str:
    lines = [f"NAME = {limit.name}"]
    per = {
        "USERS": limit.per_user,
        "HOSTS": limit.per_host,
        "QUEUES": limit.per_queue,
        "PROJECTS": limit.per_project,
        "APPS": limit.per_app,
    }
    for title, names in (
        ("USERS", limit.users),
        ("QUEUES", limit.queues),
        ("HOSTS", limit.hosts),
        ("PROJECTS", limit.projects),
        ("APPS", limit.apps),
    ):
        if names or per.get(title):
            lines.append(f"{'PER_' + title[:-1] if per.get(title) else title} = {' '.join(names) or 'all'}")
    for title, amount in (
        ("SLOTS", limit.slots),
        ("SLOTS_PER_PROCESSOR", limit.slots_per_processor),
        ("JOBS", limit.jobs),
    ):
        if amount is not None:
            lines.append(f"{title} = {_plain(amount)}")
    sizes = [(name, amount) for name, amount in _amounts(limit) if name == "mem" or name in limit.percent]
    lines += [f"{name.upper()} = {_with_unit(limit, name, amount)}" for name, amount in sizes]
    others = [f"[{name}, {_plain(amount)}]" for name, amount in limit.resources if name not in limit.percent]
    if others:
        lines.append("RESOURCE = " + " ".join(others))
    return "\nBegin Limit\n" + "\n".join(lines) + "\nEnd Limit\n"

"""blimits: the limits of lsb.resources, and how much of each is used now; -c as they are configured."""

from __future__ import annotations

from collections.abc import Iterator

from config.model.cluster import Limit
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.limits import Limits, Sum
from lavad.core.site.limit_book import Consumer, LimitBook
from lavad.queries.frame.request import Request, Shown, out

COLUMNS = ("NAME", "USERS", "QUEUES", "HOSTS", "PROJECTS", "SLOTS", "MEM", "JOBS")
_NOBODY = ("", "", "", "")


def show(request: Request) -> Iterator[Shown]:
    """A line for each limit, or where it is per user or host for each of these that uses it."""
    options = request.options()
    conf = request.cluster.conf
    names = options.words("n")
    chosen = [(at, limit) for at, limit in enumerate(conf.limits) if not names or limit.name in names]
    rows: list[tuple[str, ...]] = []
    used = Limits(LimitBook(conf), Ledger(request.cluster)).used()
    for at, limit in chosen:
        sums = {key[1:]: value for key, value in used.items() if key[0] == at}
        if "c" in options or (not sums and "a" in options):
            rows.append(_row(limit, _NOBODY, "", None))
        rows += [_row(limit, whose, host, sum_) for (whose, host), sum_ in sorted(sums.items())] if "c" not in options else []
    if not rows:
        yield out("No resource limit found.\n" if not chosen else "No resource usage found.\n")
        return
    yield out(("CONFIGURED" if "c" in options else "INTERNAL") + " RESOURCE LIMITS:\n\n")
    for row in (COLUMNS, *rows):
        yield out(("".join(f"{cell:<12} " for cell in row)).rstrip() + "\n")


def _row(limit: Limit, whose: Consumer, host: str, used: Sum | None) -> tuple[str, ...]:
    def amount(value: float, most: float | None) -> str:
        if most is None:
            return "-"
        return f"{most:g}" if used is None else f"{value:g}/{most:g}"

    user, queue, project, _ = whose
    memory = used.amounts.get("mem", 0.0) if used is not None else 0.0
    return (
        limit.name,
        user or _words(limit.users, limit.per_user),
        queue or _words(limit.queues, limit.per_queue),
        host or _words(limit.hosts, limit.per_host),
        project or _words(limit.projects, limit.per_project),
        amount(used.slots if used else 0, limit.slots),
        amount(memory, limit.mem),
        amount(used.jobs if used else 0, limit.jobs),
    )


def _words(names: tuple[str, ...], each: bool = False) -> str:
    if not names:
        return "each" if each else "-"
    return " ".join(names)

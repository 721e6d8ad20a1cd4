"""busers: limits and job slots of users and user groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from functools import cache

import msgspec

from config.model.cluster import UserConfig
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.usage_index import PEND, PSUSP, RSV, RUN, SSUSP, USUSP
from lavad.core.rules.pending import pending_jobs
from lavad.core.site.limit_book import LimitBook
from lavad.core.site.rights import NamedUsers
from lavad.queries.frame import columns
from lavad.queries.frame.request import Request, Shown, out

HEADER = "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV \n"
WIDE = "USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV  MPEND  PJOBS MPJOBS\n"


class UserRow(msgspec.Struct, frozen=True):
    """A user or group: limits, slots by state (None: not counted), pending jobs."""

    name: str
    conf: UserConfig
    counts: list[int] | None
    pending_jobs: int
    gpus: Callable[[], Counter[str]] = Counter
    """How many GPUs the jobs that run hold: ``shared``, ``excl``, and ``jexcl`` of the shared ones. Counted when asked for."""

    @property
    def njobs(self) -> int:
        return sum(self.counts or ())


def show(request: Request) -> Iterator[Shown]:
    """A line for each user or group."""
    options = request.options()
    columns.refuse_json_with(options)
    book = LimitBook(request.cluster.conf)
    rows = [_row(request, book, name) for name in _names(request)]
    given = columns.find_format(request, options, DEFAULT, "w")
    if given is not None:
        yield from columns.show_rows(options, "USERS", FIELDS, given, rows)
        return
    wide = "w" in options
    if "noheader" not in options:
        yield out(WIDE if wide else HEADER)
    for row in rows:
        yield out(_line(row, wide))


def _names(request: Request) -> list[str]:
    if not request.words:
        return [request.caller.user]
    if "all" not in request.words:
        return request.words
    conf = request.cluster.conf
    groups = [name for name, _ in conf.user_groups]
    named = {user.name for user in conf.users if not user.name.endswith("@")} - {"default"}
    members = {member for _, group in conf.user_groups for member in group} - {"all"}
    users = {*request.cluster.use.users, *named, *members} - set(groups)
    return [*sorted(users), "default", *groups]


def _row(request: Request, book: LimitBook, name: str) -> UserRow:
    cluster = request.cluster
    own = book.section_of(name) or UserConfig(name=name)
    if name == "default":
        return UserRow(name, own, None, 0)
    members = _members(cluster, name)
    counts = [0] * 6
    waiting = 0
    for member in members:
        for at, count in enumerate(cluster.use.users.get(member, ())):
            counts[at] += count
        counts[RSV] += request.view.held_slots.users[member]
        waiting += pending_jobs(cluster, member)
    return UserRow(name, own, counts, waiting, cache(lambda: _gpus(cluster, members)))


def _members(cluster: Cluster, name: str) -> frozenset[str]:
    """Of a group of everybody those who have jobs."""
    if name not in cluster.conf.groups_of_users.members:
        return frozenset((name,))
    named = NamedUsers(cluster.conf, (name,))
    listed = named.listed
    return frozenset(user for user in cluster.use.users if user in named) if listed is None else listed


def _gpus(cluster: Cluster, users: AbstractSet[str]) -> Counter[str]:
    held: Counter[str] = Counter()
    for user in users:
        for key in cluster.by_user.get(user, ()):
            if key not in cluster.started:
                continue
            job = cluster.jobs.rows[key]
            asked = cluster.specs.rows[job.spec].gpu
            count = sum(len(part.gpus) for part in job.run.parts) if job.run is not None else 0
            exclusive = asked is not None and asked.mode == "exclusive_process"
            held["excl" if exclusive else "shared"] += count
            if asked is not None and asked.j_exclusive and not exclusive:
                held["jexcl"] += count
    return held


def _line(row: UserRow, wide: bool) -> str:
    conf, counts = row.conf, row.counts
    jl_p = "-" if conf.slots_per_processor is None else f"{conf.slots_per_processor:g}"
    line = f"{row.name:<18} {jl_p:>5} {_shown(conf.max_jobs)} "
    if counts is None:
        line += " ".join(["     -"] * 6) + " "
    else:
        numbers = [row.njobs, counts[PEND] + counts[PSUSP], counts[RUN], counts[SSUSP], counts[USUSP], counts[RSV]]
        line += " ".join(f"{number:>6}" for number in numbers)
    if wide:
        waiting = None if counts is None else row.pending_jobs
        line = f"{line.rstrip()} {_shown(conf.max_pend_slots)} {_shown(waiting)} {_shown(conf.max_pend_jobs)}"
    return line + "\n"


def _shown(number: int | None) -> str:
    return f"{'-' if number is None else number:>6}"


DEFAULT = "user jl/p max njobs pend run ssusp ususp rsv"


Value = Callable[[UserRow, str], object]


def _count(*states: int) -> Value:
    return lambda row, _: "" if row.counts is None else sum(row.counts[state] for state in states)


def _limit(name: str) -> Value:
    def read(row: UserRow, _: str) -> object:
        value = getattr(row.conf, name)
        return "" if value is None else f"{value:g}"

    return read


def _held(*kinds: str) -> Value:
    def read(row: UserRow, _: str) -> object:
        held = row.gpus()
        return "" if row.counts is None else sum(held[kind] for kind in kinds)

    return read


_TABLE: tuple[tuple[str, int, Value], ...] = (
    ("user", 20, lambda row, _: row.name),
    ("jl/p jlp", 8, _limit("slots_per_processor")),
    ("max", 8, _limit("max_jobs")),
    ("nstart", 8, _count(RUN, SSUSP, USUSP, RSV)),
    ("pend", 8, _count(PEND, PSUSP)),
    ("run", 8, _count(RUN)),
    ("ssusp", 8, _count(SSUSP)),
    ("ususp", 8, _count(USUSP)),
    ("rsv", 8, _count(RSV)),
    ("njobs", 8, lambda row, _: "" if row.counts is None else row.njobs),
    ("pjobs", 8, lambda row, _: "" if row.counts is None else row.pending_jobs),
    ("mpend", 8, _limit("max_pend_slots")),
    ("mpjobs", 8, _limit("max_pend_jobs")),
    ("priority", 10, lambda row, _: ""),
    ("ngpus", 8, _held("shared", "excl")),
    ("ngpus_shared", 8, _held("shared")),
    ("ngpus_excl", 8, _held("excl")),
    ("ngpus_shared_jexcl", 8, _held("jexcl")),
)

FIELDS = columns.row_fields(_TABLE, capitals=True)

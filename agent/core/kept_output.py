"""Which output that a host keeps is too much: what jobs are ended for it, and what finished jobs left that goes.

Rule: pure; sizes are bytes as the disk counts them (a hole takes none), times are those of the files. Limits of 0 are none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from config.model.site_params import SiteParams

OUTPUT_LIMIT = "TERM_OUTPUTLIMIT"
OUTPUT_DISK = "TERM_OUTPUTDISK"
MB = 1 << 20
USER_SHARE = 0.25
"""Of the file system: what a user may keep where the site says nothing."""
RESERVE_SHARE = 0.05
"""Of the file system: what stays free where the site says nothing, at most MOST_RESERVE."""
MOST_RESERVE = 1024 * MB


class Limits(msgspec.Struct, frozen=True):
    """For one job, for all jobs of a user on the host, and what is to stay free of the file system."""

    job: int = 0
    user: int = 0
    reserve: int = 0


class Running(msgspec.Struct, frozen=True):
    """The output of a job that runs; ``ending``: it is being ended for some limit."""

    uid: str
    user: str
    size: int
    ending: bool = False


class Finished(msgspec.Struct, frozen=True):
    """A file that a finished job left, last written ``at``."""

    user: str
    name: str
    size: int
    at: float


One = TypeVar("One", Running, Finished)


class Decision(msgspec.Struct, frozen=True):
    """Uids of the attempts to end, with the name of the TermReason; files to remove."""

    end: dict[str, str] = {}
    remove: tuple[Finished, ...] = ()


def limits(settings: SiteParams, size: int) -> Limits:
    """LAVA_OUTPUT_LIMIT, LAVA_OUTPUT_USER_LIMIT and LAVA_OUTPUT_RESERVE, which are MB; ``size`` of the file system."""
    user, reserve = settings.lava_output_user_limit, settings.lava_output_reserve
    return Limits(
        job=settings.lava_output_limit * MB,
        user=int(size * USER_SHARE) if user is None else user * MB,
        reserve=min(MOST_RESERVE, int(size * RESERVE_SHARE)) if reserve is None else reserve * MB,
    )


def sizes(found: Iterable[Running] | Iterable[Finished]) -> dict[str, int]:
    """Bytes by user."""
    total: defaultdict[str, int] = defaultdict(int)
    for one in found:
        total[one.user] += one.size
    return dict(total)


def is_tight(most: Limits, running: Iterable[Running], left: Mapping[str, int], free: int) -> bool:
    """Whether ``decide`` has to know the files that finished jobs ``left`` (bytes by user)."""
    mine = sizes(running)
    over = most.user and any(mine.get(user, 0) + left.get(user, 0) > most.user for user in mine.keys() | left.keys())
    return bool(over) or free < most.reserve


def decide(most: Limits, running: Sequence[Running], finished: Sequence[Finished], free: int) -> Decision:
    """What is over a limit now. ``free``: bytes that users can still write.

    A user over the limit loses the oldest files of finished jobs; where these are not enough, the job with the most output ends.
    On a disk without its reserve the user whose running jobs have written the most loses the largest of them, unless that is less
    than the reserve: then the user who has the most of finished jobs loses the oldest. A disk that others filled ends no job.
    """
    end = {one.uid: OUTPUT_LIMIT for one in running if most.job and one.size > most.job and not one.ending}
    remove: list[Finished] = []
    writing, left = _by_user(running), _by_user(finished)
    if most.user:
        for user in writing.keys() | left.keys():
            over = _size(writing[user]) + _size(left[user]) - most.user
            gone = _oldest(left[user], over)
            remove += gone
            if over > _size(gone) and (largest := _largest(writing[user], end)) is not None:
                end[largest.uid] = OUTPUT_LIMIT
    lacking = most.reserve - free - _size(remove)
    if lacking > 0 and not end:
        user = max(writing, key=lambda name: _size(writing[name]), default="")
        if _size(writing[user]) >= most.reserve:
            if (largest := _largest(writing[user], end)) is not None:
                end[largest.uid] = OUTPUT_DISK
        elif not remove:
            user = max(left, key=lambda name: _size(left[name]), default="")
            remove += _oldest(left[user], lacking) if _size(left[user]) >= most.reserve else []
    return Decision(end, tuple(remove))


def _by_user(found: Iterable[One]) -> defaultdict[str, list[One]]:
    mine: defaultdict[str, list[One]] = defaultdict(list)
    for one in found:
        mine[one.user].append(one)
    return mine


def _size(found: Iterable[Running] | Iterable[Finished]) -> int:
    return sum(one.size for one in found)


def _oldest(files: Iterable[Finished], size: int) -> list[Finished]:
    """The oldest files that are ``size`` bytes together, or all."""
    found: list[Finished] = []
    for file in sorted(files, key=lambda one: one.at):
        if size <= 0:
            break
        if file.size:
            found.append(file)
            size -= file.size
    return found


def _largest(jobs: Sequence[Running], end: Iterable[str]) -> Running | None:
    """The job with the most output; None while one of them is being ended: there is room when it is over."""
    if not jobs or any(one.ending or one.uid in end for one in jobs):
        return None
    return max(jobs, key=lambda one: one.size)

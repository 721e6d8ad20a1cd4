"""What a waiting job keeps of its dependency condition (``bsub -w``), and the summary of finished jobs that one names.

Rule: a condition is resolved to job ids once, at submission or bmod. Finished jobs leave memory, so an ``Ended`` keeps what a
condition needs to know of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lavad.core.lang.ranges import EMPTY, Ranges

MET, BLOCKED, NEVER = 0, 1, 2
"""State of a job's condition: there is none or it is met, it is not met yet, it can never be met."""


FEW = 8
"""More jobs than these are kept as spans: a name with ``*`` names jobs that were submitted one after the other, and each of
thousands of jobs may wait for all of them."""
Jobs = tuple[int, ...] | Ranges
"""Ids of jobs, ascending."""


def jobs_of(ids: Iterable[int]) -> Jobs:
    """These jobs, as a condition keeps them."""
    ascending = sorted(set(ids))
    return tuple(ascending) if len(ascending) <= FEW else Ranges.from_indices(ascending)


def are_many(jobs: Jobs) -> bool:
    """Whether these are more than FEW."""
    return isinstance(jobs, Ranges) or len(jobs) > FEW


class Depend(msgspec.Struct, frozen=True, omit_defaults=True):
    """A condition: its text, and for each of its questions (in the order of ``questions_of``) the job ids that it is about."""

    text: str
    ids: tuple[Jobs, ...] = ()
    orphan: bool = False
    """``-ti``: end the job as soon as the condition can never be met."""


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """Finished elements of a job that a condition names; a plain job is its element 1."""

    done: Ranges = EMPTY
    exited: tuple[tuple[int, Ranges], ...] = ()
    """Exit code to the elements that ended with it."""
    indices: Ranges = EMPTY
    """All elements that an array was submitted with, once it has left memory."""
    post_failed: Ranges = EMPTY
    """Those whose post-execution command failed."""
    totals: tuple[int, int] | None = None
    """How many elements of an array that has left memory are DONE and EXIT, also of those that are not in ``done`` and ``exited``
    as they had ended before the condition was given."""

    def with_element(self, index: int, code: int | None, post_failed: bool = False) -> Ended:
        """With one more finished element; ``code``: exit code, None: DONE."""
        one = Ranges.span(index, index)
        more = self.with_elements(one, code)
        return msgspec.structs.replace(more, post_failed=self.post_failed.union(one)) if post_failed else more

    def with_elements(self, elements: Ranges, code: int | None) -> Ended:
        """With more finished elements; ``code``: exit code, None: DONE."""
        if code is None:
            return msgspec.structs.replace(self, done=self.done.union(elements))
        codes = dict(self.exited)
        codes[code] = codes.get(code, EMPTY).union(elements)
        return msgspec.structs.replace(self, exited=tuple(codes.items()))

    def joined(self, other: Ended) -> Ended:
        """The union of both."""
        failed = self.post_failed.union(other.post_failed)
        both = msgspec.structs.replace(self, indices=self.indices or other.indices, post_failed=failed)
        both = both.with_elements(other.done, None)
        for code, elements in other.exited:
            both = both.with_elements(elements, code)
        return both

    def without(self, index: int) -> Ended:
        """Without this element."""
        one = Ranges.span(index, index)
        exited = tuple((code, left) for code, elements in self.exited if (left := elements.minus(one)))
        failed = self.post_failed.minus(one)
        return msgspec.structs.replace(self, done=self.done.minus(one), exited=exited, post_failed=failed, totals=None)

    @property
    def exits(self) -> Ranges:
        """All elements that ended in EXIT."""
        found = EMPTY
        for _, elements in self.exited:
            found = found.union(elements)
        return found

    def __len__(self) -> int:
        return len(self.done) + sum(len(elements) for _, elements in self.exited)


EndedAlike = tuple[tuple[Ranges, Ended], ...]
"""Jobs, no arrays among them, and how each of them ended: thousands of them end in a few ways."""


def exit_code(status: int) -> int:
    """What ``exit(J, code)`` compares: the exit code, 128 + N for signal N."""
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8 & 0xFF

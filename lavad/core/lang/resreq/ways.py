"""The alternatives of a requirement, `{..}||{..}@delay` and rusage `||`, and the terms of a compound one, `2*{..}+4*{..}`.

Rule: alternatives (ways) are in order of preference, and an attempt keeps the number of the one that it was placed by.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

import msgspec

from lavad.core.lang.resreq.text import ResReq, combine

_EMPTY = ResReq()
MOST = 32
"""Alternatives of one requirement."""
MOST_PARTS = 64
"""Terms in all alternatives together."""


class Term(msgspec.Struct, frozen=True):
    """``count`` tasks (0: all remaining) with the queue's requirement, the job's own, and both combined."""

    count: int
    outer: ResReq
    own: ResReq
    both: ResReq


class Way(msgspec.Struct, frozen=True):
    """One term, or those of a compound requirement; not before ``delay`` seconds after the submission."""

    terms: tuple[Term, ...]
    delay: int = 0

    @property
    def compound(self) -> bool:
        """Whether its terms ask for different things."""
        return len(self.terms) > 1 or self.terms[0].count > 0

    @property
    def whole(self) -> ResReq:
        """The requirement of this alternative, as bjobs -l shows it."""
        if not self.compound:
            return self.terms[0].both
        return combine(ResReq(compound=tuple((term.count, term.both) for term in self.terms)))


def ways(outer: ResReq, own: ResReq) -> tuple[Way, ...]:
    """The alternatives of a queue's and a job's requirement together, the preferred first."""
    if not (own.compound or own.alternatives or outer.compound or outer.alternatives):
        both = own if outer == _EMPTY else combine(outer, own)
        if len(both.rusage) < 2:
            return (Way((Term(0, outer, own, both),)),)  # almost every class
    return tuple(islice(_ways(outer, own), MOST))


def is_too_many(own: ResReq) -> bool:
    """Whether a requirement has more alternatives (``MOST``) or terms (``MOST_PARTS``) than are tried."""
    found = list(islice(_ways(_EMPTY, own), MOST + 1))
    return len(found) > MOST or sum(len(way.terms) for way in found) > MOST_PARTS


def _ways(outer: ResReq, own: ResReq) -> Iterator[Way]:
    if own == _EMPTY and (outer.alternatives or outer.compound):
        # the queue's terms apply as if the job had given them
        outer, own = own, outer
    elif outer.alternatives or outer.compound:
        outer = _EMPTY
    for req, delay in own.alternatives or ((own, 0),):
        parts = req.compound or ((0, req),)
        for terms in product(*(tuple(_terms(count, outer, part)) for count, part in parts)):
            yield Way(terms, delay)


def _terms(count: int, outer: ResReq, own: ResReq) -> Iterator[Term]:
    """A term for each of the alternatives of its rusage."""
    both = combine(outer, own)
    if len(both.rusage) < 2:
        yield Term(count, outer, own, both)
    for rusage in both.rusage if len(both.rusage) > 1 else ():
        yield Term(count, outer, own, combine(msgspec.structs.replace(both, rusage=(rusage,))))

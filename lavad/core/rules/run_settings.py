"""What holds for a job while it runs: its own word, its application profile's, its queue's, the cluster's parameters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lavad.core.lang.resreq.sections import Use
from lavad.core.lang.resreq.text import ResReq, ResReqError, parse


@lru_cache(maxsize=4096)
def requested_mem(resreq: str) -> float:
    """MB of memory that a requirement reserves: what its first rusage with memory says; 0.0 for none."""
    try:
        return next((use.amount for use in _uses(parse(resreq)) if use.name == "mem"), 0.0)
    except ResReqError:
        return 0.0


def _uses(req: ResReq) -> Iterator[Use]:
    for part in (*(part for _, part in req.compound), *(part for part, _ in req.alternatives)):
        yield from _uses(part)
    for rusage in req.rusage:
        yield from rusage.uses

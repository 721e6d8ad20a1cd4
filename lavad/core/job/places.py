"""Where among the parts of an attempt those of a host are: of a large job, which has a thousand reports, looked up in place of a
search for each.
"""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core.job.job import Attempt

MANY, KEPT = 64, 64
"""Parts from which on an attempt's hosts are kept; of how many attempts."""
_kept: dict[str, dict[str, int]] = {}
"""Uid of an attempt to its hosts, each with its place."""


def places_of(run: Attempt, host: str) -> Sequence[int]:
    """The places of the parts on a host: one, none, or two where it has come back to an elastic job."""
    parts = run.parts
    # the hosts of another attempt stay as they are
    if len(parts) >= MANY and not run.elastic:
        place = _kept.get(run.uid, {}).get(host, -1)
        if place < 0:
            if len(_kept) >= KEPT:
                del _kept[next(iter(_kept))]
            known = _kept[run.uid] = {part.host: place for place, part in enumerate(parts)}
            place = known.get(host, -1)
        if 0 <= place < len(parts) and parts[place].host == host:
            return (place,)
    return [place for place, part in enumerate(parts) if part.host == host]

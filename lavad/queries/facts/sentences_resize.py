"""bhist's sentences about a running job that grows or shrinks."""

from __future__ import annotations

from collections.abc import Sequence

from lavad.core import events as ev
from lavad.core.job.job import Placed


def grew(event: ev.JobGrew) -> list[str]:
    """Hosts or slots were added."""
    return [f"Additional allocation on {_places(event.parts)};"]


def shrank(event: ev.JobShrank) -> list[str]:
    """Hosts or slots are given back."""
    why = f" by user or administrator <{event.by}>" if event.by else f": {event.why}" if event.why else ""
    return [f"Release allocation on {_places(event.parts)}{why};"]


def resized(event: ev.JobResized) -> list[str]:
    """It is done, or was refused by its command."""
    return ["Resize notification accepted;" if event.ok else f"Resize notification rejected: {event.why or 'it failed'};"]


def left(event: ev.PartLeft) -> list[str]:
    """A host is no longer the job's."""
    why = f": {event.why}" if event.why else ""
    return [f"Host <{event.host}> has left the job{why};"]


def asked(event: ev.ResizeAsked) -> list[str]:
    """bresize request or cancel."""
    if not event.most:
        return [f"Resize request cancelled by user or administrator <{event.by}>;"]
    return [f"Resize request for up to {event.most} slots by user or administrator <{event.by}>;"]


def _places(parts: Sequence[Placed]) -> str:
    count = sum(placed.slots for placed in parts)
    named = " ".join(f"<{placed.slots}*{placed.host}>" if placed.slots > 1 else f"<{placed.host}>" for placed in parts)
    return f"{count} Hosts/Processors {named}"

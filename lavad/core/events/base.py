"""What all events have in common; see ``events``."""

from __future__ import annotations

import msgspec


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag=True, tag_field="is", kw_only=True):
    """A fact. ``at``: seconds since the epoch."""

    at: float


class JobEvent(Event, frozen=True):
    """A fact about one job, array or element; ``key`` as in ``core.lang.ids``."""

    key: int

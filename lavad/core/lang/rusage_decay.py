"""Reservations that do not last as long as the job: rusage[…:duration=…:decay=1].

Rule: a decaying amount goes down in ``STEPS`` even steps and is never less than the straight line, so that a job's
reservations change a few times in its life and not at every tick.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

STEPS = 8
_SOON = 1e-3
"""Times of two events differ by rounding."""

Amounts = tuple[tuple[str, float], ...]


class Fade(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """``amount`` of a resource is reserved for ``seconds`` from the dispatch on; with ``decay`` less after each step."""

    name: str
    amount: float
    seconds: int
    decay: bool = False
    step: int = 0
    """Steps that are over."""


def next_change(fades: Iterable[Fade]) -> float | None:
    """How many seconds after the dispatch less is reserved than now; None: never."""
    return min((fade.seconds * (fade.step + 1) / STEPS if fade.decay else fade.seconds for fade in fades), default=None)


def faded(reserved: Amounts, fades: tuple[Fade, ...], passed: float) -> tuple[Amounts, tuple[Fade, ...]]:
    """What is reserved ``passed`` seconds after the dispatch, and what of it will still change."""
    passed += _SOON
    rest = {fade.name: 0.0 for fade in fades}
    kept = []
    for fade in fades:
        if passed >= fade.seconds:
            continue
        step = max(fade.step, int(passed * STEPS / fade.seconds)) if fade.decay else 0
        kept.append(replace(fade, step=step))
        rest[fade.name] = fade.amount * (STEPS - step) / STEPS
    amounts = ((name, min(amount, rest.get(name, amount))) for name, amount in reserved)
    return tuple(pair for pair in amounts if pair[1] > 0), tuple(kept)


def joined(one: tuple[Fade, ...], other: tuple[Fade, ...]) -> tuple[Fade, ...]:
    """Of two parts on one host; where both reserve the same, nothing of it fades before all of it may."""
    found = {fade.name: fade for fade in one}
    for fade in other:
        old = found.get(fade.name)
        found[fade.name] = (
            fade
            if old is None
            else Fade(fade.name, old.amount + fade.amount, max(old.seconds, fade.seconds), old.decay and fade.decay)
        )
    return tuple(found.values())

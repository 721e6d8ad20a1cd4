"""Resource reservations that end before the job does: rusage[…:duration=…:decay=1].

Rule: a decaying amount falls in ``STEPS`` even steps and is never below the straight line of LSF's linear decay, so that a
job's reservations change a few times in its life and not all the time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

STEPS = 8
_SOON = 1e-3
"""Seconds: times of two events may differ by rounding."""

Amounts = tuple[tuple[str, float], ...]


class RusageDecay(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """``amount`` of a resource is reserved for ``seconds`` from dispatch on; with ``decay`` less after each step."""

    name: str
    amount: float
    seconds: int
    decay: bool = False
    step: int = 0
    """Steps that have passed."""


def next_change(fades: Iterable[RusageDecay]) -> float | None:
    """Seconds after dispatch at which less is reserved than now; None: never."""
    return min((fade.seconds * (fade.step + 1) / STEPS if fade.decay else fade.seconds for fade in fades), default=None)


def decayed(reserved: Amounts, fades: tuple[RusageDecay, ...], passed: float) -> tuple[Amounts, tuple[RusageDecay, ...]]:
    """(what is reserved ``passed`` seconds after dispatch, what of it will still change)."""
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


def merge_decays(one: tuple[RusageDecay, ...], other: tuple[RusageDecay, ...]) -> tuple[RusageDecay, ...]:
    """The decays of two parts on one host; of a resource that both reserve, nothing ends before all of it may."""
    found = {fade.name: fade for fade in one}
    for fade in other:
        old = found.get(fade.name)
        found[fade.name] = (
            fade
            if old is None
            else RusageDecay(fade.name, old.amount + fade.amount, max(old.seconds, fade.seconds), old.decay and fade.decay)
        )
    return tuple(found.values())

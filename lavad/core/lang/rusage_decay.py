"""Resource reservations that end before the job does: rusage[…:duration=…:decay=1].

Rule: a decaying amount falls in ``STEPS`` equal steps and never below the line of LSF's linear decay, so that the reservations of
a job change only a few times.
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
    """``amount`` of a resource is reserved for ``seconds`` after dispatch; with ``decay``, less after each step."""

    name: str
    amount: float
    seconds: int
    decay: bool = False
    step: int = 0
    """Steps that have passed."""


def next_change(decays: Iterable[RusageDecay]) -> float | None:
    """Seconds after dispatch at which less is reserved than now; None: never."""
    return min((decay.seconds * (decay.step + 1) / STEPS if decay.decay else decay.seconds for decay in decays), default=None)


def decayed(reserved: Amounts, decays: tuple[RusageDecay, ...], passed: float) -> tuple[Amounts, tuple[RusageDecay, ...]]:
    """(amounts reserved ``passed`` seconds after dispatch, the decays that remain)."""
    passed += _SOON
    rest = {decay.name: 0.0 for decay in decays}
    kept = []
    for decay in decays:
        if passed >= decay.seconds:
            continue
        step = max(decay.step, int(passed * STEPS / decay.seconds)) if decay.decay else 0
        kept.append(replace(decay, step=step))
        rest[decay.name] = decay.amount * (STEPS - step) / STEPS
    amounts = ((name, min(amount, rest.get(name, amount))) for name, amount in reserved)
    return tuple(pair for pair in amounts if pair[1] > 0), tuple(kept)


def merge_decays(one: tuple[RusageDecay, ...], other: tuple[RusageDecay, ...]) -> tuple[RusageDecay, ...]:
    """The decays of two parts on one host; a resource that both reserve is kept until the later end."""
    found = {decay.name: decay for decay in one}
    for decay in other:
        old = found.get(decay.name)
        found[decay.name] = (
            decay
            if old is None
            else RusageDecay(decay.name, old.amount + decay.amount, max(old.seconds, decay.seconds), old.decay and decay.decay)
        )
    return tuple(found.values())

"""What a simulation with a broken rule must show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sim.simulation import Simulation
from tests.sim.watch import Broken

MOST = 60
"""Seeds after which a broken rule should have shown."""


def must_break(text: str, simulation: Callable[[int], Simulation], begin: int = 0) -> None:
    """Some seed breaks, and the text of it names what was broken."""
    for seed in range(begin, begin + MOST):
        try:
            simulation(seed).run()
        except Broken as failure:
            first = str(failure).splitlines()[0]
            assert first.startswith(f"seed {seed}: ")
            with pytest.raises(Broken, match=text):
                raise Broken(first) from None
            return
    raise AssertionError(f"{MOST} seeds, and nothing was found")

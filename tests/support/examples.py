"""How many examples a property is tried with: a share, LAVA_TEST_EXAMPLES, of the number that it names; `make soak` has more."""

from __future__ import annotations

import os

SHARE = float(os.environ.get("LAVA_TEST_EXAMPLES", "0.2"))
"""Each run tries others, so that many small ones find what a large one does."""
FEWEST = 10


def examples(whole: int) -> int:
    """This share of so many, and enough to meet what a strategy has."""
    return max(min(FEWEST, whole), round(whole * SHARE))

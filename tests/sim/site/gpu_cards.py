"""The GPUs of simulated hosts."""

from __future__ import annotations

from lavad.core.site.host import Gpu

CARD = 80_000
"""MB of each."""


def cards_of(host: str, count: int = 2) -> tuple[Gpu, ...]:
    """So many GPUs of a host, as its agent tells of them."""
    return tuple(Gpu(uuid=f"GPU-{host}-{at}", index=at, memory=CARD) for at in range(count))

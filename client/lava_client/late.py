"""Calls whose jobs have ended well and whose results are not there yet: a file may be seen late over NFS."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from lava_client.call import CallFuture
    from lava_client.follow import Seen

    Call = tuple[CallFuture[Any], Seen, float]
    """The call, how its job has ended, and until when its result is looked for (``time.monotonic``)."""

PATIENCE = 60.0
"""Seconds for which a result is looked for."""
LOOK = 0.5
"""Seconds between two looks."""


class Late:
    """Not safe for threads: its owner holds a lock."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._look_at = 0.0

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, call: Call) -> None:
        """Look for the result of a call again."""
        self._calls.append(call)

    def futures(self) -> list[CallFuture[Any]]:
        """The calls."""
        return [future for future, *_ in self._calls]

    def pause(self) -> float | None:
        """Seconds until the next look; None: there is none."""
        return max(0.0, self._look_at - time.monotonic()) if self._calls else None

    def take(self) -> list[Call]:
        """Those that are to be looked for now; one whose result still is not there is added again."""
        if self.pause() != 0.0:
            return []
        calls, self._calls = self._calls, []
        self._look_at = time.monotonic() + LOOK
        return calls

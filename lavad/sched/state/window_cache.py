"""Time windows of queues, hosts and goals, each parsed once."""

from __future__ import annotations

from lavad.core.lang.windows import Local, WindowError, Windows, is_open, next_change, parse_windows
from lavad.core.rules.goals.work import Clock


class WindowCache:
    """Windows by their text; one that does not parse is open at all times."""

    def __init__(self) -> None:
        self._parsed: dict[str, Windows] = {}

    def _window(self, text: str) -> Windows:
        found = self._parsed.get(text)
        if found is None:
            try:
                found = parse_windows(text)
            except WindowError:
                found = Windows()
            self._parsed[text] = found
        return found

    def is_open(self, text: str, local: Local) -> bool:
        """Whether a time window is open; "" always is."""
        return not text or is_open(self._window(text), local)

    def next_change(self, text: str, local: Local) -> int | None:
        """Seconds until a window opens or closes; None: never."""
        return next_change(self._window(text), local) if text else None

    def clock(self, local: Local) -> Clock:
        """Of time windows at this time."""
        return Clock(lambda text: self.is_open(text, local), lambda text: self.next_change(text, local))

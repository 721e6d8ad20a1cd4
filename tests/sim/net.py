"""A host's stream to the master: messages arrive in order, after a while, or never when the stream breaks."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.timeline import Timeline

SLOWEST = 0.4


class Stream:
    """One connection; once broken, nothing that was under way arrives."""

    def __init__(self, time: Timeline) -> None:
        self.up = True
        self.welcomed = False
        """Whether the host may speak on it: it was greeted back."""
        self._time = time
        self._arrives = {"up": 0.0, "down": 0.0}

    def send(self, way: str, deliver: Callable[[], None], twice: bool = False) -> None:
        """``deliver`` is called when the message arrives (``twice``: it comes doubled)."""
        if not self.up:
            return
        time = self._time
        at = max(self._arrives[way], time.now + time.random.uniform(0.0005, SLOWEST if time.random.random() < 0.1 else 0.01))
        self._arrives[way] = at

        def arrive() -> None:
            if self.up:
                deliver()
                if twice:
                    deliver()

        time.after(at - time.now, arrive)

    def cut(self) -> None:
        """Break it."""
        self.up = False

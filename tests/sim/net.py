"""A host's stream to the master: messages arrive in order, after a while, or never when the stream breaks."""

from __future__ import annotations

from collections.abc import Callable

from lavad.core.rules.effects import Effect
from tests.sim.timeline import Timeline

SLOWEST = 0.4


class Order:
    """What travels from the master to a host."""

    def __init__(
        self, effect: Effect, slots: int, first: bool, sequence: int, expires: float, lease: float, chunk: str = ""
    ) -> None:
        self.effect = effect
        self.chunk = chunk
        self.slots = slots
        self.first = first
        self.sequence = sequence
        self.expires = expires
        self.lease = lease


class Stream:
    """One connection; once broken, nothing that was under way arrives."""

    def __init__(self, time: Timeline) -> None:
        self.up = True
        self.welcomed = False
        """Whether the host may speak on it: it was greeted back."""
        self.greeted = False
        """Whether the master has answered the greeting."""
        self.ends: dict[str, Callable[[Callable[[], None]], None]] = {}
        """Who takes what arrives on a way, if not at once."""
        self._time = time
        self._held: list[Callable[[], None]] | None = None
        self._arrives = {"up": 0.0, "down": 0.0}

    def send(self, way: str, deliver: Callable[[], None], twice: bool = False) -> None:
        """``deliver`` is called when the message arrives (``twice``: it comes doubled)."""
        if not self.up:
            return
        time = self._time
        at = max(self._arrives[way], time.now + time.random.uniform(0.0005, SLOWEST if time.random.random() < 0.1 else 0.01))
        self._arrives[way] = at

        def take() -> None:
            if self.up:
                deliver()
                if twice:
                    deliver()

        def arrive() -> None:
            if self._held is not None:
                self._held.append(arrive)
            elif way in self.ends:
                self.ends[way](take)
            else:
                take()

        time.after(at - time.now, arrive)

    def hold(self, seconds: float) -> None:
        """Nothing gets through for a while, and then what was sent meanwhile does."""
        if self._held is None:
            self._held = []
            self._time.after(seconds, self._release)

    def _release(self) -> None:
        held, self._held = self._held or [], None
        for arrive in held:
            arrive()

    def cut(self) -> None:
        """Break it."""
        self.up = False

"""A process, or a whole machine, that can be stopped and woken: what happens to it meanwhile happens when it wakes."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.timeline import Timeline


class Process(Timeline):
    """The timeline as one process sees it. ``inside``: the machine that it runs on, which may sleep."""

    def __init__(self, world: Timeline, inside: Process | None = None) -> None:
        self.world, self.inside = world, inside
        self.random, self.story = world.random, world.story
        self._stops = 0
        self._waiting: list[Callable[[], None]] = []

    @property
    def now(self) -> float:  # type: ignore[override]
        """CLOCK_BOOTTIME, which goes on."""
        return self.world.now

    def after(self, delay: float, what: Callable[[], None]) -> None:
        """As of a timeline, but not before the process runs."""
        self.world.after(delay, lambda: self.run_when_awake(what))

    def run_when_awake(self, what: Callable[[], None]) -> None:
        """Now, or when it is woken, in order."""
        if self._stops or self._waiting:
            self._waiting.append(what)
        elif self.inside is not None:
            self.inside.run_when_awake(what)
        else:
            what()

    @property
    def stopped(self) -> bool:
        """Whether nothing of it runs."""
        return bool(self._stops) or (self.inside is not None and self.inside.stopped)

    def stop(self, seconds: float) -> None:
        """SIGSTOP, or sleep, and later the contrary."""
        self._stops += 1
        self.world.after(seconds, self._wake)

    def _wake(self) -> None:
        self._stops -= 1
        if not self._stops:
            waiting, self._waiting = self._waiting, []
            for what in waiting:
                self.run_when_awake(what)

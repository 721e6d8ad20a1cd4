"""A part whose user is there: what they do at their end is done to its processes."""

from __future__ import annotations

import signal

from agent.starter.part.partrun import PartRun
from agent.starter.process.phase import Phase


class InteractiveRun(PartRun):
    """A part of ``bsub -I``, on the job's first host."""

    def _user_does(self, what: str, sig: int) -> None:
        """``came``: what waits for them may start; ``signal``: pass it on; ``left``: the terminal hangs up."""
        if self.killing or self.phase is not Phase.RUNNING:
            return
        if what == "signal":
            self.signals.send(sig)
        elif what == "came" and self._outfit.held_up:
            self._or_refuse(self._start_tasks)
        elif what == "left" and self._started:
            self._ending.ask(self.spec.get("grace", 2.0), signal.SIGHUP, signal.SIGCONT)
        elif what == "left":
            self.kill()

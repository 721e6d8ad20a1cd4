"""What bqueues says about a queue: its status, limits and job slots."""

from __future__ import annotations

from config.model.queue import QueueConfig
from lavad.core.cluster.usage_index import PEND, PSUSP, RSV, RUN, SSUSP, USUSP
from lavad.core.lang.windows import WindowError, is_open, parse_windows
from lavad.queries.facts.slot_reservations import held_slots
from lavad.queries.frame import times
from lavad.queries.frame.view import View


class QueueRow:
    """A queue with its slots by state."""

    def __init__(self, view: View, conf: QueueConfig, now: float, user: str = "") -> None:
        self.view = view
        self.conf = conf
        self.now = now
        use = view.cluster.use
        counts = use.pairs.get((conf.name, user)) if user else use.queues.get(conf.name)
        counts = counts or [0] * 6
        self.pend = counts[PEND] + counts[PSUSP]
        self.run, self.ssusp, self.ususp, self.rsv = counts[RUN], counts[SSUSP], counts[USUSP], counts[RSV]
        self.rsv += held_slots(view, queue=conf.name, user=user)
        self.susp = self.ssusp + self.ususp
        self.njobs = self.pend + self.run + self.susp + self.rsv
        self.state = view.cluster.queue_state(conf.name)

    @property
    def window_open(self) -> bool:
        """Whether its run and dispatch windows are open."""
        return all(self._is_open(text) for text in (self.conf.run_window, self.conf.dispatch_window))

    def _is_open(self, text: str) -> bool:
        try:
            return not text or is_open(parse_windows(text), times.week_second(self.now))
        except WindowError:
            return True

    @property
    def status(self) -> str:
        """``Open:Active``."""
        active = self.state.active and self.window_open
        return f"{self._open}:{'Active' if active else 'Inactive'}"

    @property
    def long_status(self) -> str:
        """``Open:Inact_Adm``: with the cause."""
        if not self.state.active:
            return f"{self._open}:Inact_Adm"
        return f"{self._open}:Active" if self.window_open else f"{self._open}:Inact_Win"

    @property
    def _open(self) -> str:
        return "Open" if self.state.open else "Closed"


def limit(value: float | None) -> str:
    """A limit in a column."""
    return "-" if value is None else f"{value:g}"

"""Parts that the agent added itself, which do something for a job's part: how they end, and what follows for that part.

Rule: one that nothing waits for any more is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent.parts.completion import Completion
from agent.parts.control import PartControl
from agent.parts.entry import Entry
from agent.parts.job_report import CHECKPOINT, POST, PRE, RESIZED, STAGED, is_own, owner_of
from agent.parts.prepost import PrePost
from agent.parts.resizing import Resizing
from agent.parts.table import PartTable
from agent.starter.protocol import orders
from agent.starter.protocol.reports import End, Ended, Lost, PartReport, PartStatus, Refused
from agent.starter_client.outgoing import Outgoing


class OwnParts:
    """Those of ``table``. ``report`` handles what follows for a job's part; ``ended`` its end, which waited for a checkpoint."""

    def __init__(
        self,
        table: PartTable,
        starter: Outgoing,
        completion: Completion,
        control: PartControl,
        resizing: Resizing,
        prepost: PrePost,
    ) -> None:
        self._table = table
        self._starter = starter
        self._completion = completion
        self._control = control
        self._resizing = resizing
        self._prepost = prepost
        self.report: Callable[[PartReport], None] = _nothing
        self.ended: Callable[[Entry, End], None] = _nothing

    def settle(self, listed: Mapping[str, PartStatus]) -> None:
        """A starter has connected: how they went, and which are of no more use."""
        for uid, status in listed.items():
            owned = owner_of(uid) in self._table
            if uid.endswith(RESIZED) and status.state.over and owned:
                self._command_ended(uid, status.end, status.reason)
            elif uid.endswith((CHECKPOINT, STAGED)) and owned:
                self._control.checkpoint_here(uid, status.end, status.reason if status.state.over else None)
            elif uid.endswith((PRE, POST)) and owned:
                if status.state.over:
                    self._around_ended(uid, status.end, status.reason or "")
            elif is_own(uid) and (status.state.over or not owned):
                self._starter.put(orders.Forget((uid,)))

    def reported(self, report: PartReport) -> None:
        """A report about one of them."""
        if not isinstance(report, Ended | Refused | Lost):
            return
        uid = report.uid
        end = report.end if isinstance(report, Ended) else None
        reason = "" if isinstance(report, Ended) else report.reason
        if uid.endswith(RESIZED):
            self._command_ended(uid, end, reason)
        elif uid.endswith((CHECKPOINT, STAGED)):
            self._checkpoint_ended(uid, end, reason)
        elif uid.endswith((PRE, POST)):
            self._around_ended(uid, end, reason)
        else:
            self._completion.mailed(uid, end is not None and end.status == 0, reason)

    def _checkpoint_ended(self, uid: str, end: End | None, reason: str | None) -> None:
        self._control.checkpoint_made(uid, end, reason or "")
        entry = self._table.find(owner_of(uid))
        if entry is not None and entry.end is not None:
            self.ended(entry, entry.end)  # it waited for this

    def _command_ended(self, uid: str, end: End | None, reason: str | None) -> None:
        why = "" if end else reason or "its end is not known"
        self._resizing.ended(uid, end.status if end else 0, why)

    def _around_ended(self, uid: str, end: End | None, reason: str) -> None:
        """What ran before or after a part as another user."""
        follows = self._prepost.ended(uid, end, reason)
        if follows is not None:
            self.report(follows)
        elif uid.endswith(PRE) and (entry := self._table.find(owner_of(uid))) is not None and entry.part.stopped:
            self._control.stop(entry, True)  # it was suspended before there was anything to suspend


def _nothing(*_: object) -> None:
    pass

"""What shepherds do for users besides running parts: they read files, find folders, and write reports of jobs.

Rule: a report is written once for each part, however often the agent asks for it.
"""

from __future__ import annotations

from collections.abc import Callable

from agent.starter.protocol import orders
from agent.starter.protocol.answers import Data, Folders, Generations
from agent.starter.protocol.reports import FromStarter, PartReport, Wrote
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import Part
from agent.starter.supervisor.pool import Pool
from agent.starter.supervisor.shepherd_handle import ShepherdHandle, ShepherdKey

_ANSWER: dict[type, type] = {
    orders.Read: Data,
    orders.FindFolders: Folders,
    orders.FindGenerations: Generations,
    orders.Append: Wrote,
    orders.Deliver: Wrote,
}


class UserRequests:
    """The requests that shepherds work on. ``report`` and ``answer`` send to the agent."""

    def __init__(
        self,
        parts: dict[str, Part],
        journal: Journal,
        pool: Pool,
        report: Callable[[PartReport], None],
        answer: Callable[[FromStarter], None],
    ) -> None:
        self._parts = parts
        self._journal = journal
        self._pool = pool
        self._report = report
        self._answer = answer

    def read(self, key: ShepherdKey, order: orders.Look) -> None:
        """Have a shepherd of this kind read a file or find folders; OSError when none can be forked."""
        self._pool.ask(key, order)

    def write(self, key: ShepherdKey, order: orders.Write) -> None:
        """Have a shepherd write the report of a part that has ended."""
        part = self._parts.get(order.id)
        if part is not None and part.wrote is not None:
            self._report(Wrote(uid=part.uid, error=part.wrote))
            return
        if part is not None and part.writing:
            return
        try:
            self._pool.ask(key, order)
        except OSError as e:
            self._report(Wrote(uid=order.id, error=f"no process to write it: {e.strerror}"))
            return
        if part is not None:
            part.writing = True

    def answered(self, shepherd: ShepherdHandle, answer: Data | Folders | Generations | Wrote) -> None:
        """A shepherd has done what it was asked: pass the answer on to the agent. An answer to nothing is ignored."""
        asked = shepherd.asked.get(answer.id)
        if asked is None or not isinstance(answer, _ANSWER[type(asked)]):
            return
        del shepherd.asked[answer.id]
        if isinstance(answer, Wrote):
            self._wrote(answer.id, answer.error)
        else:
            self._answer(answer)
        if not shepherd.asked and shepherd.busy is None:
            self._pool.release(shepherd)

    def shepherd_died(self, shepherd: ShepherdHandle) -> None:
        """Answer the requests that a dead shepherd had."""
        for asked in shepherd.asked.values():
            if isinstance(asked, orders.Append | orders.Deliver):
                self._wrote(asked.id, "the shepherd that wrote it died")
            else:
                self._answer(failed(asked, "the shepherd that read it died"))
        shepherd.asked.clear()

    def _wrote(self, uid: str, error: str) -> None:
        part = self._parts.get(uid)
        if part is not None:
            part.writing, part.wrote = False, error
            self._journal.wrote(part)
        self._report(Wrote(uid=uid, error=error))


def failed(asked: orders.Look, why: str) -> Data | Folders | Generations:
    """The answer to a request that failed."""
    match asked:
        case orders.Read():
            return Data(asked.id, error=why)
        case orders.FindFolders():
            return Folders(asked.id, error=why)
    return Generations(asked.id, error=why)

"""All attempts that are on this host, and the one way by which the master is told of them.

Rule: whoever works on parts shares one ``PartTable`` and one ``Reporter``; nobody else holds entries or sends reports of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from agent.master.link import Outbox
from agent.parts.entry import Entry
from proto import agent_pb2 as pb


class PartTable:
    """The attempts by uid, and the newest one of each job."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Entry] = {}
        self._newest: dict[int, str] = {}

    def __iter__(self) -> Iterator[Entry]:
        """All of them; the table may change meanwhile."""
        return iter(list(self._by_uid.values()))

    def __len__(self) -> int:
        return len(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def find(self, uid: str) -> Entry | None:
        """The attempt, if it is here."""
        return self._by_uid.get(uid)

    def find_newest(self, key: int) -> Entry | None:
        """The attempt of a job that was started last, if it is here."""
        return self._by_uid.get(self._newest.get(key, ""))

    def add(self, entry: Entry) -> None:
        """One that was here before, of whatever age."""
        self._by_uid[entry.uid] = entry

    def add_newest(self, entry: Entry) -> None:
        """One that is about to start."""
        self.add(entry)
        self._newest[entry.key] = entry.uid

    def adopt(self, entries: Iterable[Entry]) -> None:
        """Those that the agent had before it was restarted."""
        for entry in entries:
            self.add(entry)

    def remove(self, entry: Entry) -> None:
        """Nothing of it is here any more."""
        self._by_uid.pop(entry.uid, None)
        if self._newest.get(entry.key) == entry.uid:
            del self._newest[entry.key]


class Reporter:
    """Tells the master of parts; of one that belongs to another store it hears nothing."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def put(self, report: pb.Report, entry: Entry) -> None:
        """A report about a part."""
        if not entry.orphan:
            self._outbox.put(report)

    def new_stream(self) -> set[str]:
        """A new stream to the master: what it has not acknowledged goes again. The uids of the ends among it."""
        self._outbox.new_stream()
        return self._outbox.ends()

    def clear(self) -> None:
        """Another master's store: nothing of what was to be told concerns it."""
        self._outbox.clear()

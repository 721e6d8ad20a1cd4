"""The eye that sees all hosts at once: which processes really run where. It knows nothing of the master."""

from __future__ import annotations

from collections import Counter

from lavad.core.lang.ids import show
from tests.sim.timeline import Timeline


class Broken(AssertionError):
    """Something that must never happen has happened."""


class Watch:
    """Told of every process that starts or ends."""

    def __init__(self, time: Timeline, slots: dict[str, int]) -> None:
        """``slots``: of hosts that never run more at a time. With preemption one may: of a job that was preempted while the host
        was away it hears first that it starts, and then that it stops."""
        self._time = time
        self._slots = slots
        self.live: dict[tuple[str, str], tuple[int, int]] = {}
        """(uid, host) to (key, slots)."""
        self.uids: dict[int, list[str]] = {}
        """Key to the attempts that ever ran, in order."""
        self.ends: dict[str, dict[str, int | None]] = {}
        """uid to host to wait status; None: it went down with its host."""
        self.ran: set[tuple[str, str]] = set()
        """(uid of a part, host) of all that ever ran."""
        self.may_repeat: set[int] = set()
        """Keys that may run again: leased, or asked for by a user."""
        self.leased: set[int] = set()
        """Keys whose jobs are rerunnable or checkpointable."""
        self.asleep: set[str] = set()
        """Hosts on which nothing runs for the time being, as they are suspended."""
        self.forced: set[int] = set()
        """Keys that were taken out of the system while they may still run (bkill -r)."""

    def woke(self, host: str) -> None:
        """A machine that slept runs again, with what its shepherds have let live."""
        self.asleep.discard(host)
        for (part, where), (key, _) in self.live.items():
            if where == host:
                self._alone(key, attempt_of(part), host)

    def _alone(self, key: int, uid: str, host: str) -> None:
        runs = {attempt_of(other) for (other, where), (its, _) in self.live.items() if its == key and where not in self.asleep}
        if others := runs - {uid}:
            raise Broken(f"job {show(key)} runs twice at the same time: attempts {sorted(others)} and {uid} on {host}")

    def started(self, key: int, uid: str, host: str, slots: int) -> None:
        """A process of an attempt runs on a host."""
        part, uid = uid, attempt_of(uid)
        self._alone(key, uid, host)
        ran = self.uids.setdefault(key, [])
        if uid not in ran:
            if ran and key not in self.may_repeat:
                raise Broken(f"job {show(key)} may run once only: it ran as {ran} and now as {uid} on {host}")
            ran.append(uid)
        if (part, host) in self.ran:
            raise Broken(f"part {part} of job {show(key)} runs a second time on {host}")
        self.ran.add((part, host))
        self.live[part, host] = (key, slots)
        taken = Counter[str]()
        for (_, where), (job, count) in self.live.items():
            taken[where] += 0 if job in self.forced else count
        if host in self._slots and taken[host] > self._slots[host]:
            raise Broken(f"host {host} has {self._slots[host]} slots and runs {taken[host]}")

    def ended(self, uid: str, host: str, status: int | None) -> None:
        """A process is no more."""
        self.live.pop((uid, host))
        self.ends.setdefault(attempt_of(uid), {})[host] = status


def attempt_of(uid: str) -> str:
    """The attempt of a part; one that was added to a running attempt has a uid of its own."""
    return uid.partition("x")[0]

"""Collects the changes of load, usage and GPUs since the last recorded plan, so that a replay can make the plan again.

Rule: changes count as recorded only once the master has stored them; else they are sent again with the next plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.lang.windows import Local
from lavad.core.plan.cycle_record import CycleRecord, digest_of, gpu_memory_in_use, pack, slim
from lavad.core.plan.plan import Plan, Recorded
from lavad.core.plan.volatile import Soft, SoftUpdate

WHOLE = 3600.0
"""Seconds after which all load and usage is recorded again, so that older records can be deleted."""


class Recorder:
    """``note`` collects changes, ``record`` packs them for a plan, ``done`` learns whether they were stored."""

    def __init__(self) -> None:
        self._whole_sent_at = 0.0
        self._needs_whole = True
        self._is_whole = False
        """Whether the newest record has all load and usage."""
        self._changes = _Changes()
        self._sent = _Changes()
        self._gpus: dict[str, dict[str, int]] = {}
        """Host to what the stored records say of its GPUs; ``_sent_gpus``: what the newest record adds."""
        self._sent_gpus: dict[str, dict[str, int]] = {}
        self._hosts_left = 0

    def note(self, update: SoftUpdate) -> None:
        """Load or usage is about to change, or has changed."""
        if not self._needs_whole:
            self._changes.hosts.update(update.load)
            self._changes.gpus.update(update.gpus)
            self._changes.parts.update((usage.key, host) for host, usage in update.usage)

    def stop(self) -> None:
        """Record nothing for now; the next record is complete."""
        self._needs_whole = True
        self._changes, self._sent = _Changes(), _Changes()

    def record(self, plan: Plan, soft: Soft, now: float, local: Local) -> Recorded:
        """The inputs of this plan beside the events."""
        anew = self._is_whole = self._needs_whole or not self._whole_sent_at <= now < self._whole_sent_at + WHOLE
        self._needs_whole, self._sent, self._changes = False, self._changes, _Changes()
        if anew:
            self._whole_sent_at = now
            load = soft.load
            hosts = sorted(soft.gpus)
            usage = tuple((host, slim(one)) for parts in soft.usage.values() for host, one in parts.items())
        else:
            load = {host: soft.load[host] for host in sorted(self._sent.hosts) if host in soft.load}
            hosts = sorted(self._sent.gpus & soft.gpus.keys())
            parts = ((host, soft.usage.get(key, {}).get(host)) for key, host in sorted(self._sent.parts))
            usage = tuple((host, slim(one)) for host, one in parts if one is not None)
        record = CycleRecord(
            version=plan.version,
            now=now,
            local=local,
            digest=digest_of(plan),
            anew=anew,
            load=load,
            usage=usage,
            gpus=self._changed_gpus(soft, hosts, anew),
        )
        return Recorded(anew, pack(record))

    def _changed_gpus(self, soft: Soft, hosts: Iterable[str], anew: bool) -> dict[str, dict[str, int]]:
        """Each heartbeat tells how the GPUs are, and seldom that they use another number of GB."""
        if anew or soft.hosts_left != self._hosts_left:
            self._gpus, self._hosts_left = {}, soft.hosts_left  # a replay forgets the GPUs of a host that leaves
        used = ((host, gpu_memory_in_use(soft, host)) for host in hosts)
        self._sent_gpus = {host: gpus for host, gpus in used if self._gpus.get(host) != gpus}
        return self._sent_gpus

    def done(self, kept: bool) -> None:
        """The master has dealt with the plan; ``kept``: its record is stored."""
        if kept:
            self._gpus |= self._sent_gpus
        else:
            self._changes.add(self._sent)
            self._needs_whole = self._needs_whole or self._is_whole
        self._sent = _Changes()


class _Changes:
    """Hosts with another load, (job, host) with other usage, hosts whose GPUs are in another state."""

    __slots__ = ("gpus", "hosts", "parts")

    def __init__(self) -> None:
        self.gpus: set[str] = set()
        self.hosts: set[str] = set()
        self.parts: set[tuple[int, str]] = set()

    def add(self, other: _Changes) -> None:
        self.hosts |= other.hosts
        self.parts |= other.parts
        self.gpus |= other.gpus

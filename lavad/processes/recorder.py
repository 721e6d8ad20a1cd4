"""Keeps account of what the scheduler has heard since its last recorded plan, so that a plan can be repeated.

Rule: what was told counts as told only when the master has stored it; else it is told again with the next plan.
"""

from __future__ import annotations

from lavad.core.lang.windows import Local
from lavad.core.plan.cycle_record import CycleRecord, digest_of, pack, slim
from lavad.core.plan.plan import Plan, Recorded
from lavad.core.plan.volatile import Soft, SoftUpdate

WHOLE = 3600.0
"""Seconds after which the soft state is told as a whole again, so that old records can be forgotten."""


class Recorder:
    """``note`` takes the news, ``record`` tells them with a plan, ``done`` says whether they were stored."""

    def __init__(self) -> None:
        self._told_whole = 0.0
        self._anew = True
        self._whole = False
        """Whether the newest record tells all."""
        self._news = _News()
        self._told = _News()

    def note(self, update: SoftUpdate) -> None:
        """Something of the soft state is about to change, or has changed."""
        if not self._anew:
            self._news.hosts.update(update.load)
            self._news.parts.update((usage.key, host) for host, usage in update.usage)
            self._news.gone.update(update.gone)

    def stop(self) -> None:
        """Nothing is recorded for now."""
        self._anew = True
        self._news, self._told = _News(), _News()

    def record(self, plan: Plan, soft: Soft, now: float, local: Local) -> Recorded:
        """What this plan was decided on."""
        anew = self._whole = self._anew or not self._told_whole <= now < self._told_whole + WHOLE
        self._anew, self._told, self._news = False, self._news, _News()
        if anew:
            self._told_whole = now
            load = soft.load
            usage = tuple((host, slim(one)) for hosts in soft.usage.values() for host, one in hosts.items())
        else:
            load = {host: soft.load[host] for host in sorted(self._told.hosts) if host in soft.load}
            parts = ((host, soft.usage.get(key, {}).get(host)) for key, host in sorted(self._told.parts))
            usage = tuple((host, slim(one)) for host, one in parts if one is not None)
        record = CycleRecord(
            version=plan.version,
            now=now,
            local=local,
            digest=digest_of(plan),
            anew=anew,
            load=load,
            usage=usage,
            gone=tuple(sorted(self._told.gone)),
        )
        return Recorded(anew, pack(record))

    def done(self, kept: bool) -> None:
        """The master has dealt with the plan; ``kept``: what was told with it is stored."""
        if not kept:
            self._news.add(self._told)
            self._anew = self._anew or self._whole
        self._told = _News()


class _News:
    """What has changed: hosts with another load, parts with other usage, jobs whose usage is forgotten."""

    __slots__ = ("gone", "hosts", "parts")

    def __init__(self) -> None:
        self.hosts: set[str] = set()
        self.parts: set[tuple[int, str]] = set()
        self.gone: set[int] = set()

    def add(self, other: _News) -> None:
        self.hosts |= other.hosts
        self.parts |= other.parts
        self.gone |= other.gone

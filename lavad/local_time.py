"""The local time of the site: that of the system the master runs on. Core and sched are told the time and its zone."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - compared with times of UTC without their zone


class _SystemZone(tzinfo):
    """The zone of the C library (TZ, /etc/localtime), summer time included."""

    def _known(self, at: datetime | None) -> time.struct_time:
        return time.localtime(time.time() if at is None else at.replace(tzinfo=None).timestamp())

    def utcoffset(self, at: datetime | None) -> timedelta:
        """That before the change for times that summer time leaves out: they are an hour later by the clock, never before."""
        if at is None:
            return timedelta(seconds=self._known(None).tm_gmtoff)
        naive = at.replace(tzinfo=None)
        return timedelta(seconds=round((naive - _EPOCH).total_seconds() - naive.timestamp()))

    def dst(self, at: datetime | None) -> timedelta:
        return timedelta(hours=max(0, self._known(at).tm_isdst))

    def tzname(self, at: datetime | None) -> str:
        return self._known(at).tm_zone

    def fromutc(self, at: datetime) -> datetime:
        seconds = (at.replace(tzinfo=None) - _EPOCH).total_seconds()
        return datetime.fromtimestamp(seconds).replace(tzinfo=self)  # noqa: DTZ006 - this is where local time comes from


SYSTEM_ZONE = _SystemZone()


@lru_cache(maxsize=1)
def local_time(at: float) -> datetime:
    """The local time of a point in time (seconds since the epoch)."""
    return datetime.fromtimestamp(at, SYSTEM_ZONE)

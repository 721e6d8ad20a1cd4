"""The masters' lease while this lavad holds it: taken, and renewed until another master has it.

Rule: what the master grants counts from the moment before the database was asked (``lavad.hosts.leases``).
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import NamedTuple

from lavad.boottime import boottime
from lavad.hosts.leases import Leases
from lavad.store.errors import StoreRefused
from lavad.store.lease import Lease
from lavad.store.refusals import Refusals
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Another master has taken over, or may have."""


class Held(NamedTuple):
    """The lease as this lavad took it."""

    epoch: int
    leases: Leases
    refusals: Refusals
    """Of its renewals: a store that does not answer is noticed here first, also while nobody asks for anything."""


async def acquire(lease: Lease, leasing: Workers, holder: str, seconds: float) -> Held | None:
    """Take the lease; None: another master has it. Raises StoreRefused."""
    asked = boottime()
    epoch = await leasing.run(lease.acquire, holder, seconds)
    if epoch is None:
        return None
    refusals = Refusals(log, "the lease is not renewed", "the lease is renewed again")
    return Held(epoch, Leases(boottime(), math.inf if lease.alone else asked + seconds), refusals)


async def renew(lease: Lease, leasing: Workers, held: Held, seconds: float) -> None:
    """Hold the lease; raises LeaseLost.

    A refused renewal, as of a full store, is ignored while the lease lasts; a master with exclusive use of its store
    continues in any case.
    """
    while True:
        await asyncio.sleep(seconds / 4)
        asked = boottime()
        try:
            renewed = await leasing.run(lease.renew, held.epoch, seconds)
        except StoreRefused as refusal:
            if not held.leases.is_certain(boottime()):
                raise LeaseLost(f"the lease of epoch {held.epoch} ran out: {refusal}") from refusal
            held.refusals.failed(refusal)
            continue
        held.refusals.worked()
        if not renewed:
            raise LeaseLost(f"another master has taken over from epoch {held.epoch}")
        held.leases.held(asked + seconds)

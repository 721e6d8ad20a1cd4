"""The masters' lease while ``lava db`` changes a store, as no master may then.

It is renewed by a thread: one that is killed keeps a master waiting no longer than a killed master does.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from lavad.store.errors import StoreHeld, StoreRefused
from lavad.store.lease import Lease
from lavad.store.writer import Store

HOLDER = "lava db"
SECONDS = 20.0
"""As a master has it at most."""


@contextlib.contextmanager
def held_lease(store: Store, seconds: float = SECONDS) -> Iterator[int]:
    """Hold the lease of a store; its epoch. Raises ``StoreHeld`` where a master has it, ``StoreRefused``."""
    lease = Lease(store.engine)
    epoch = lease.acquire(HOLDER, seconds)
    if epoch is None:
        found = lease.find_holder()
        raise StoreHeld(f"the store has a master: {found[0] if found else 'it has just gone, try again'}")
    ended = threading.Event()
    renewing = threading.Thread(target=_renew, args=(lease, epoch, seconds, ended), daemon=True)
    if not lease.alone:
        renewing.start()
    try:
        yield epoch
    finally:
        ended.set()
        if not lease.alone:
            renewing.join()
        lease.release(epoch)


def _renew(lease: Lease, epoch: int, seconds: float, ended: threading.Event) -> None:
    while not ended.wait(seconds / 4):
        # a database that is away is told by the work itself; where another has the lease, what is committed is refused
        with contextlib.suppress(StoreRefused):
            if not lease.renew(epoch, seconds):
                return

"""Starts processes from the master's loop, which goes on where there is no room for another process."""

from __future__ import annotations

import asyncio
import logging
from typing import BinaryIO

from lavad.replica import spawn
from lavad.replica.spawn import Spawned

AGAIN = 5.0
"""Seconds until it is tried again."""
log = logging.getLogger(__name__)


async def started(module: str, output: BinaryIO | None) -> Spawned:
    """As ``spawn.spawn``, as soon as the host has room for it."""
    while True:
        try:
            return spawn.spawn(module, output)
        except OSError as error:
            log.error("%s cannot be started: %s", module, error.strerror)
            await asyncio.sleep(AGAIN)

"""LAVA_FENCE: a program of the site's that makes sure that a silent host is off, so that its jobs need not wait for their leases.

Rule: it is run as lavad's own account with the host's name and address, for silent hosts with jobs that may run again, one at a
time for a host; by root only where nobody else can write it. The name is proven, the address is what the host has said of itself.
Exit code 0 alone says that nothing runs there any more; anything else changes nothing, and it is tried again. Where more than
half of three or more hosts are silent it is not run: then it is rather this master that is cut off.
"""

from __future__ import annotations

import asyncio
import logging
import re

from config.programs.owner import why_not_as_root
from lavad.boottime import boottime
from lavad.core import events as ev
from lavad.core.decide.base.decided import Decided
from lavad.core.lang.asks import Refused
from lavad.engine import Engine
from lavad.hosts.leases import Leases
from proto.daemon.programs import run_program
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

TIMEOUT = 60.0
"""Seconds that one run may take."""
AT_ONCE = 8
_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:%_-]{0,253}", re.ASCII)
"""Nothing that a program would take for an option, or a shell for a command."""


class Fencing:
    """Runs ``program`` for hosts that are to be fenced. ``root``: this process is root's."""

    def __init__(self, engine: Engine, leases: Leases, program: str, root: bool) -> None:
        self._engine = engine
        self._leases = leases
        self._program = program
        self._root = root
        self._looking = Workers("fence program")
        self._next: dict[str, float] = {}
        """Silent host to when it is tried again."""
        self._running: dict[str, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Look every second for hosts that are to be fenced."""
        while self._program:
            await asyncio.sleep(1.0)
            now, hosts = boottime(), self._leases.to_fence(self._engine.cluster)
            self._next = {host: at for host, at in self._next.items() if host in hosts}
            self._running = {host: task for host, task in self._running.items() if not task.done()}
            for host in hosts:
                if len(self._running) < AT_ONCE and host not in self._running and now >= self._next.get(host, 0.0):
                    self._running[host] = asyncio.create_task(self._try(host))

    async def _try(self, host: str) -> None:
        began = boottime()
        address = self._engine.cluster.hosts.rows[host].facts.address
        status, text = await self.ask(host, address)
        self._next[host] = boottime() + self._engine.cluster.conf.params.lava_host_timeout
        log.warning("host %s: %s %s", host, self._program, status)
        event = ev.HostFenced(at=self._engine.clock(), host=host, ok=status == "exited with 0", how=status, text=text)
        try:
            await self._engine.ask(lambda cluster, now: Decided(events=[event] if host in cluster.hosts.rows else []))
        except Refused as refusal:
            log.warning("%s", refusal)
            return
        if event.ok:
            self._leases.is_off(host, began)

    async def ask(self, host: str, address: str) -> tuple[str, str]:
        """How the program ended, and what it said; or why it was not run."""
        if self._root and (why := await self._looking.run(why_not_as_root, self._program)):
            return why.removeprefix(f"{self._program} "), ""
        words = [self._program, host, address if _ADDRESS.fullmatch(address) else ""]
        return await run_program(words, TIMEOUT)

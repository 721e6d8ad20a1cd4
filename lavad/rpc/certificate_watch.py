"""Takes up new certificates, ends the streams of those that hold no more, and says which end soon."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from lavad.hosts.sessions import Sessions
from lavad.rpc.certificates import Certificate, Certificates, certificate_of
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

PAUSE = 2.0
"""Seconds between two looks at the files."""


class CertificateWatch:
    """Of a master that serves over TLS. ``reloaded`` is called when other certificates are in force.

    ``is_known``: whether a host is one of the cluster.
    """

    def __init__(
        self,
        certificates: Certificates,
        sessions: Sessions,
        clock: Callable[[], float],
        reloaded: Callable[[], None],
        is_known: Callable[[str], bool],
    ) -> None:
        self._certificates = certificates
        self._sessions = sessions
        self._clock = clock
        self._reloaded = reloaded
        self._is_known = is_known
        self._files = Workers("certificates")
        self.ending: tuple[str, ...] = ()
        """A line for each certificate that ends soon, or has ended."""
        self._ended: dict[str, Certificate] = {}
        """Host to its certificate that has ended, until it has another or leaves: TLS names no host that it does not let in."""

    async def run(self) -> None:
        """Look every few seconds."""
        while True:
            if await self._files.run(self._certificates.reload):
                self._reloaded()
            self.look()
            await asyncio.sleep(PAUSE)

    def look(self) -> None:
        """End streams whose certificate holds no more; find the certificates that end soon."""
        now = self._clock()
        for session in list(self._sessions.rows.values()):
            peer = certificate_of(session.certificate)
            self._ended.pop(session.host, None)
            if why := self._certificates.why_not(peer, now):
                log.warning("host %s: the stream is closed: %s", session.host, why)
                self._sessions.hang_up(session.host)
                if peer.ends <= now:
                    self._ended[session.host] = peer
        self._ended = {host: peer for host, peer in self._ended.items() if self._is_known(host)}
        former, self.ending = self.ending, tuple(self._certificates.ending(self._peers(), now))
        for line in self.ending:
            if line not in former:
                log.warning("%s", line)

    def ends(self) -> dict[str, float]:
        """When each certificate ends, by the name in it."""
        return self._certificates.ends(self._peers())

    def _peers(self) -> list[Certificate]:
        return [*self._ended.values(), *(certificate_of(session.certificate) for session in list(self._sessions.rows.values()))]

"""Who an agent is: by the cluster key (clusters of ``lava up``), or by its host's certificate (a site)."""

from __future__ import annotations

import hmac
from typing import Any

ROLE = b"agent:"


class PeerAuth:
    """``key``: the shared key of a cluster on one machine; None: certificates decide."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    def why_not_host(self, context: Any, host: str) -> str:
        """Why the peer is not the agent of ``host``; "" if it is."""
        known = self.host_of(context)
        if known is None:
            return "the cluster key is wrong" if self._key is not None else "no certificate of an agent"
        return "" if known == host else f"the peer is host {known}, and says that it is {host}"

    def host_of(self, context: Any) -> str | None:
        """The host whose agent the peer is, None if it is none."""
        if self._key is not None:
            metadata = dict(context.invocation_metadata() or ())
            given = metadata.get("lava-key", "")
            given = given.encode() if isinstance(given, str) else given
            return metadata.get("lava-host") if hmac.compare_digest(given, self._key) else None
        auth = context.auth_context()
        for name in auth.get("x509_common_name", ()):
            if name.startswith(ROLE):
                return str(name[len(ROLE) :].decode())
        return None

"""The gRPC server for agents, and who an agent is: TLS with certificates of both sides at a site, else the cluster key."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any

import grpc

from proto import agent_pb2_grpc

MAX_MESSAGE = 256 << 20
OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_send_message_length", MAX_MESSAGE),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 1_000),
    ("grpc.so_reuseport", 0),
]


class NoTls(Exception):
    """The certificates cannot be used; one line."""


def credentials(folder: str) -> grpc.ServerCredentials:
    """TLS credentials from ``master.key``, ``master.crt`` and ``ca.crt`` in a folder; clients must have one too."""
    try:
        parts = [Path(folder, name).read_bytes() for name in ("master.key", "master.crt", "ca.crt")]
    except OSError as error:
        raise NoTls(f"LAVA_TLS_DIR: {error}") from None
    return grpc.ssl_server_credentials([(parts[0], parts[1])], parts[2], require_client_auth=True)


async def serve(servicer: agent_pb2_grpc.AgentsServicer, address: str, tls_folder: str) -> grpc.aio.Server:
    """Start serving on ``address``; the caller allows an empty ``tls_folder`` on loopback only. Raises NoTls."""
    server = grpc.aio.server(options=OPTIONS)
    agent_pb2_grpc.add_AgentsServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    secure = credentials(tls_folder) if tls_folder else None
    port = server.add_secure_port(address, secure) if secure else server.add_insecure_port(address)
    if not port:
        raise NoTls(f"cannot listen on {address}")
    await server.start()
    return server


ROLE = b"agent:"


class PeerAuth:
    """``key``: the shared key of a cluster on one machine; None: certificates decide."""

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    def why_not_host(self, context: Any, host: str) -> str:
        """Why the peer is not the agent of ``host``; "": it is."""
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

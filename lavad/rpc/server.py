"""The gRPC server for agents: TLS with certificates of both sides at a site, the cluster key on loopback otherwise."""

from __future__ import annotations

from pathlib import Path

import grpc

from lavad.rpc.agents import Agents
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


async def serve(agents: Agents, address: str, tls_folder: str) -> grpc.aio.Server:
    """Start serving; without TLS only on loopback."""
    server = grpc.aio.server(options=OPTIONS)
    agent_pb2_grpc.add_AgentsServicer_to_server(agents, server)  # type: ignore[no-untyped-call]
    secure = credentials(tls_folder) if tls_folder else None
    port = server.add_secure_port(address, secure) if secure else server.add_insecure_port(address)
    if not port:
        raise NoTls(f"cannot listen on {address}")
    await server.start()
    return server

"""The gRPC server for agents, and who an agent is: TLS with certificates of both sides, or a socket of this machine in a
folder that only this account and root can enter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from proto import localsocket

if TYPE_CHECKING:
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
    # who connects and has no certificate to show takes a place, and it would be for two minutes
    ("grpc.server_handshake_timeout_ms", 20_000),
]


class CannotListen(Exception):
    """The address or the certificates cannot be used; one line."""


class Listener:
    """The server; ``close`` ends it and its streams."""

    def __init__(self, server: grpc.aio.Server, folder: int = -1) -> None:
        self._server = server
        self._folder = folder
        """Of the socket, open for as long as the server removes the socket through it; -1: none."""

    async def close(self) -> None:
        """Stop serving."""
        await self._server.stop(0)
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1


async def serve(servicer: agent_pb2_grpc.AgentsServicer, address: str, secure: grpc.ServerCredentials | None) -> Listener:
    """Start serving on ``address``: ``unix:`` and a path, else over TLS for clients with a certificate. Raises CannotListen."""
    import grpc

    from lavad.wire.calls import calls_of

    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((calls_of(servicer),))
    folder = -1
    try:
        if localsocket.is_local(address):
            folder, through = localsocket.make(address)
            port = server.add_insecure_port(through)
        elif secure is None:
            raise CannotListen(f"cannot listen on {address}: there are no certificates")
        else:
            port = server.add_secure_port(address, secure)
    except (OSError, RuntimeError, localsocket.NotPrivate) as error:
        said = str(error).partition("; set GRPC_VERBOSITY")[0]
        raise CannotListen(f"cannot listen on {address}: {said}") from None
    if not port:
        raise CannotListen(f"cannot listen on {address}")
    await server.start()
    return Listener(server, folder)


ROLE = b"agent:"


class Call(Protocol):
    """A call, as far as it tells who calls: the part of gRPC's context that is read."""

    def peer(self) -> str: ...

    def auth_context(self) -> Mapping[str, Iterable[bytes]]: ...

    def invocation_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


class PeerAuth:
    """``local``: peers come through the socket of this machine, as only this account and root can; else certificates decide.

    ``why_not``: why a certificate (PEM) that the authority has signed does not hold, "": it holds.
    """

    def __init__(self, local: bool, why_not: Callable[[bytes], str] = lambda pem: "") -> None:
        self.local = local
        self._why_not = why_not

    def why_not_host(self, context: Call, host: str) -> str:
        """Why the peer is not the agent of ``host``; "": it is."""
        known, why = self.identify(context)
        if why:
            return why
        return "" if known == host else f"the peer is host {known}, and says that it is {host}"

    def identify(self, context: Call) -> tuple[str, str]:
        """(the host whose agent the peer is, why it is none)."""
        if self.local:
            host = str(dict(context.invocation_metadata() or ()).get("lava-host", ""))
            return host, "" if host else "the peer names no host"
        for name in context.auth_context().get("x509_common_name", ()):
            if name.startswith(ROLE) and name != ROLE:
                why = self._why_not(certificate_in(context))
                return ("", why) if why else (name[len(ROLE) :].decode(), "")
        return "", "no certificate of an agent"


def certificate_in(context: Call) -> bytes:
    """The certificate with which a peer came, b"" if there is none."""
    return next(iter(context.auth_context().get("x509_pem_cert", ())), b"")

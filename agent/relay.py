"""Commands of users on this host: frames of the local socket, passed to the master with the caller's name.

Rule: the agent does not look into the frames. No master at the moment: ``{"later":true}``, and the client tries again.
An answer that breaks off ends the connection: nothing behind a part of it can be taken for the rest.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
from typing import Any

import grpc
import grpc.aio

from agent.launch.accounts import Accounts
from agent.launch.site import Site
from agent.link import Session, metadata
from agent.starter.frames import frame, pack
from proto import agent_pb2 as pb
from proto.unixpath import reachable

MAX_FRAME = 16 << 20
_LATER = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
)
log = logging.getLogger("lava-agent")


class Relay:
    """The agent's socket for commands; ``session`` is the stream to the master, None while there is none."""

    def __init__(self, site: Site, accounts: Accounts) -> None:
        self._site = site
        self._accounts = accounts
        self.session: Session | None = None
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Open the socket; every user of the host may connect."""
        path = self._site.socket
        temporary = f"{path}.{os.getpid()}"
        with reachable(temporary) as short:
            self._server = await asyncio.start_unix_server(self._serve, short, limit=1 << 20, backlog=1024)
        os.chmod(temporary, 0o666)
        os.rename(temporary, path)

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            try:
                os.unlink(self._site.socket)
            except FileNotFoundError:
                pass

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            uid = _peer_uid(writer.get_extra_info("socket"))
            user = await self._accounts.name_of(uid)
            while (body := await _read_frame(reader)) is not None:
                if not await self._pass_on(pb.CommandFrame(user=user, uid=uid, frame=body), writer):
                    return
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _pass_on(self, request: pb.CommandFrame, writer: asyncio.StreamWriter) -> bool:
        """False when the answer broke off."""
        session = self.session
        if session is None:
            writer.write(pack({"later": True}))
            return True
        begun = False
        try:
            async for answer in session.stub.Command(request, metadata=metadata(self._site)):
                writer.write(frame(answer.frame))
                begun = True
                await writer.drain()
        except grpc.aio.AioRpcError as e:
            if begun:
                return False
            writer.write(pack(_refusal(e)))
        except (asyncio.CancelledError, grpc.aio.UsageError):
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            if begun:
                return False
            writer.write(pack({"later": True}))
        return True


def _refusal(e: grpc.aio.AioRpcError) -> dict[str, Any]:
    if e.code() in _LATER:
        return {"later": True}
    log.warning("a command was not passed on: %s %s", e.code().name, e.details())
    return {"refused": e.details() or e.code().name, "exit": 255}


async def _read_frame(reader: asyncio.StreamReader) -> bytes | None:
    """The body of the next frame; None at the end, or when the client sends what is no frame."""
    try:
        size = int.from_bytes(await reader.readexactly(4), "big")
        if size > MAX_FRAME:
            return None
        return await reader.readexactly(size)
    except asyncio.IncompleteReadError:
        return None


def _peer_uid(sock: Any) -> int:
    data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", data)[1])

"""Relays commands of users on this host: frames of the local socket go to the master with the caller's name.

Rule: the agent does not read the frames. Without a master the answer is ``{"later":true}``, and the client tries again. If an
answer breaks off, the connection is closed, so that the next answer cannot be mistaken for its rest.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import aclosing

import grpc
import grpc.aio

from agent.launch.site import Site
from agent.master.link import Session, metadata
from proto import agent_pb2 as pb
from proto.daemon import callers
from proto.daemon.callers import CallerReader, Callers, NameUnknown
from proto.unixpath import reachable

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

    def __init__(self, site: Site) -> None:
        self._site = site
        self.callers = Callers()
        self.session: Session | None = None
        self._server: asyncio.Server | None = None

    async def listen(self) -> None:
        """Open the socket, to which every user of the host may connect."""
        path = self._site.socket
        temporary = f"{path}.{os.getpid()}"
        with reachable(temporary) as short:
            self._server = await callers.listen(short, self._serve, 1024)
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

    async def _serve(self, reader: CallerReader, writer: asyncio.StreamWriter) -> None:
        try:
            uid = callers.peer_uid(writer.get_extra_info("socket"))
            with self.callers.let_in(uid) as welcome:
                if not welcome:
                    writer.write(callers.pack(callers.LATER))
                    return
                try:
                    user = await self.callers.name_of(uid)
                except NameUnknown as why:
                    writer.write(callers.pack(callers.refusal(str(why))))
                    return
                async with aclosing(self.callers.frames(reader, uid)) as frames:
                    async for body in frames:
                        with reader.answering():
                            if body is None:
                                writer.write(callers.pack(callers.TOO_LARGE))
                            elif not await self._pass_on(pb.CommandFrame(user=user, uid=uid, frame=body), writer):
                                return
                            await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def _pass_on(self, request: pb.CommandFrame, writer: asyncio.StreamWriter) -> bool:
        """Send one command to the master and the answer back; False when the answer broke off."""
        session = self.session
        if session is None:
            writer.write(callers.pack(callers.LATER))
            return True
        begun = False
        try:
            async for answer in session.stub.Command(request, metadata=metadata(self._site)):
                writer.write(callers.pack(answer.frame))
                begun = True
                await writer.drain()
        except grpc.aio.AioRpcError as e:
            if begun:
                return False
            writer.write(callers.pack(_refusal(e)))
        except (asyncio.CancelledError, grpc.aio.UsageError):
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            if begun:
                return False
            writer.write(callers.pack(callers.LATER))
        return True


def _refusal(e: grpc.aio.AioRpcError) -> bytes:
    if e.code() in _LATER:
        return callers.LATER
    log.warning("a command was not passed on: %s %s", e.code().name, e.details())
    return callers.refusal(e.details() or e.code().name)

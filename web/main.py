"""lava-web: ``python -m web.main --conf DIR [--run DIR] [--address [HOST:]PORT] [--pidfile FILE] [--log FILE]``.

It needs no privilege, and no other account than one that may connect to lavad's socket.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import fcntl
import logging
import os
import resource
import socket
import struct
import sys
import termios
from contextlib import suppress
from typing import Any, NamedTuple

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from config.lsfconf import find_envdir, level_of, read_lsf_conf
from proto.daemon import logfile
from proto.daemon.logs import log_as, log_to
from proto.whole_file import replace_file, write_pid
from web import problems
from web.app import make_app
from web.master import Master
from web.settings import BadSettings, Settings, read
from web.signin import SignIn
from web.streams import most_connections

_PR_SET_NAME = 15
SILENT = 20.0
"""Seconds after which a connection is closed that has brought no whole request, or takes nothing of its answer; after an answer,
twice as many at most."""


class _Seen(NamedTuple):
    """What a look at a connection has found."""

    is_answered: bool
    """The last request has its answer, or there was none."""
    last: RequestResponseCycle | None
    left: int
    """Bytes that the other side has not taken yet."""
    took: int
    """How often it has taken so much that more could follow."""


class Patient(H11Protocol):
    """A connection; one that brings no request, or takes no answer, takes no place from others for long.

    What is no request of HTTP is told as REST tells any problem, as is one of a connection too many. Those that were there before
    it are served.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most, self.limit_concurrency = self.limit_concurrency, None
        if most is not None and len(self.connections) > most:
            self.app = problems.answer(problems.Problem(503, "Too many connections; try again", 5), {"Connection": "close"})
        self._took = 0
        self.loop.call_later(SILENT, self._look, _Seen(True, None, 0, 0))

    def resume_writing(self) -> None:
        super().resume_writing()
        self._took += 1

    def _look(self, before: _Seen) -> None:
        left = self._left()
        now = _Seen(self.cycle is None or self.cycle.response_complete, self.cycle, left, self._took)
        if self.transport.is_closing() and not left:
            return
        if now == before and left:
            self.transport.abort()  # what is closed waits until all of it is taken
        elif now == before and now.is_answered:
            self.transport.close()
        self.loop.call_later(SILENT, self._look, now)

    def _left(self) -> int:
        """Bytes that are to be sent, also those that the kernel has, which takes many at once from a slow connection's buffer."""
        left = self.transport.get_write_buffer_size()
        sock = self.transport.get_extra_info("socket")
        if not left or sock is None or sock.fileno() < 0:
            return left
        (queued,) = struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)))
        return left + int(queued)

    def send_400_response(self, msg: str) -> None:
        response = problems.answer(problems.Problem(400, msg), {"Connection": "close"})
        begin = h11.Response(status_code=400, headers=response.raw_headers, reason=b"Bad Request")
        for event in (begin, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class Listener(socket.socket):
    """Where browsers connect. Those beyond ``most`` open files are sent away: the page needs some for lavad.

    Who has connected and goes no further in TLS counts nowhere else.
    """

    def __init__(self, descriptor: int, most: int) -> None:
        super().__init__(fileno=descriptor)
        self._most = most

    def accept(self) -> tuple[socket.socket, Any]:
        """A connection. BlockingIOError: there is none, or there are too many."""
        link, address = super().accept()
        if link.fileno() >= self._most:  # the lowest number that was free
            link.close()
            raise BlockingIOError
        return link, address


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM."""
    options = _options(argv)
    if options.log:
        logfile.follow(options.log, inherited=True)
    log_to(sys.stderr, "%(asctime)s %(levelname)s %(name)s: %(message)s")
    confdir = options.conf or find_envdir(os.environ) or ""
    try:
        conf = read_lsf_conf(os.path.join(confdir, "lsf.conf"))
        logging.getLogger().setLevel(level_of(conf.get("LSF_LOG_MASK", "")))
        log_as(conf.get("LAVA_LOG_FORMAT", ""))
        settings = read(conf, options.run, options.address)
        listening = _listen(settings)
    except (BadSettings, OSError) as error:
        sys.stderr.write(f"lava-web: {error}\n")
        return 1
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    listening = Listener(listening.detach(), most * 3 // 4)
    settings = settings._replace(port=listening.getsockname()[1])
    ctypes.CDLL(None).prctl(_PR_SET_NAME, b"lava-web", 0, 0, 0)
    if options.address_file:
        replace_file(options.address_file, address_of(settings) + "\n")
    if options.pidfile:
        write_pid(options.pidfile)
    master = Master(settings.run)
    config = uvicorn.Config(
        make_app(settings, master, SignIn(settings, master)),
        log_config=None,
        # a link is part of an address, and goes into no log
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=most_connections(),
        http=Patient,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=64 << 10,
        ssl_certfile=settings.cert or None,
        ssl_keyfile=settings.key or None,
        lifespan="off",
        ws="none",
    )
    logging.info("the page is served at %s", address_of(settings))
    try:
        uvicorn.Server(config).run([listening])
    finally:
        for path in (options.pidfile, options.address_file):
            if path:
                with suppress(FileNotFoundError):
                    os.unlink(path)
    return 0


def address_of(settings: Settings) -> str:
    """What a browser on this host opens."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return settings.url or f"{'https' if settings.cert else 'http'}://{host}:{settings.port}"


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.create_server((settings.host, settings.port), family=family, backlog=512)
    listening.set_inheritable(False)
    # connections inherit it; asyncio sets it only where a socket names its protocol: a body would wait 40 ms for the
    # acknowledgement of its headers
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lava-web")
    parser.add_argument("--conf", default="", help="the folder of lsf.conf")
    parser.add_argument("--run", default="", help="the folder of lavad's socket")
    parser.add_argument("--address", default="", help="[HOST:]PORT, in place of LAVA_WEB_ADDRESS")
    parser.add_argument("--pidfile", default="")
    parser.add_argument("--address-file", default="", help="where the address to open is written")
    parser.add_argument("--log", default="")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())

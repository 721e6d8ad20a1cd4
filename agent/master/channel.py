"""How an agent reaches a master: over TLS with the certificates of both, or through a socket of its own machine.

Rule: nothing is said to a listener that is not proven to be a master.
"""

from __future__ import annotations

import asyncio
import contextlib
import os

import grpc
import grpc.aio

from agent.launch.site import Site
from proto import localsocket
from proto.workers import Workers

_OPTIONS = [
    ("grpc.max_receive_message_length", 128 << 20),
    ("grpc.max_send_message_length", 128 << 20),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
]
READING = 5.0
"""Seconds for the files of the certificates."""
_certificates = Workers("certificates")


class NotMaster(Exception):
    """There is no master at this address; the text says why."""


class Link:
    """A channel, and the folder of the socket that it leads to, open for as long; -1: none."""

    def __init__(self, channel: grpc.aio.Channel, folder: int = -1) -> None:
        self.channel = channel
        self._folder = folder

    async def close(self) -> None:
        """Hang up."""
        await self.channel.close(None)
        if self._folder >= 0:
            with contextlib.suppress(OSError):
                os.close(self._folder)
            self._folder = -1


async def connect(target: str, site: Site) -> Link:
    """A channel to ``target``; NotMaster where nothing proves who listens there."""
    if localsocket.is_local(target):
        try:
            folder, through = localsocket.reach(target)
        except OSError as e:
            raise NotMaster(f"{e.filename}: {e.strerror}") from None
        except localsocket.NotPrivate as e:
            raise NotMaster(str(e)) from None
        return Link(grpc.aio.insecure_channel(through, options=_OPTIONS), folder)
    if not files_of(site):
        raise NotMaster("not dialled without LAVA_TLS_DIR: anybody could listen there")
    try:
        async with asyncio.timeout(READING):
            ca, key, cert = await _certificates.run(_credentials, site)
    except TimeoutError:
        raise NotMaster(f"{site.conf['LAVA_TLS_DIR']}: the certificates cannot be read") from None
    except OSError as e:
        raise NotMaster(f"{e.filename}: {e.strerror}") from None
    credentials = grpc.ssl_channel_credentials(ca, key, cert)
    options: list[tuple[str, object]] = list(_OPTIONS)
    if name := site.conf.get("LAVA_TLS_MASTER_NAME"):
        options.append(("grpc.ssl_target_name_override", name))
    return Link(grpc.aio.secure_channel(target, credentials, options=options))


def files_of(site: Site) -> tuple[str, ...]:
    """The files of this agent's certificate; () where it has none."""
    folder = site.conf.get("LAVA_TLS_DIR", "")
    return tuple(os.path.join(folder, name) for name in ("ca.crt", f"{site.host}.key", f"{site.host}.crt")) if folder else ()


def stamp(site: Site) -> tuple[tuple[int, int], ...]:
    """Changes when the files of the certificate are replaced."""
    found = []
    for path in files_of(site):
        try:
            stat = os.stat(path)
        except OSError:
            return ()
        found.append((stat.st_mtime_ns, stat.st_ino))
    return tuple(found)


def _credentials(site: Site) -> tuple[bytes, bytes, bytes]:
    found = []
    for path in files_of(site):
        with open(path, "rb") as file:
            found.append(file.read())
    return found[0], found[1], found[2]

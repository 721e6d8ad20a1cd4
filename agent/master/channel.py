"""How an agent reaches a master: over TLS with the certificates of both, or through a socket of its own machine.

Rule: nothing is sent to a listener that is not proven to be a master. Where there is a list of revoked certificates, the
listener's certificate is fetched and checked first, and the channel then accepts that alone: gRPC's channels read no such list.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import time

import grpc
import grpc.aio

from agent.launch.site import Site
from proto import localsocket
from proto.daemon import revoked
from proto.daemon.workers import Workers

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
SHAKING = 5.0
"""Seconds for a handshake."""
_BROKEN_OFF = ("Secure", "andshake", "SSL", "ssl", "closed", "reset", "pipe")
"""What gRPC says of a listener that it has reached, one of them at least."""
_certificates = Workers("certificates")
_handshakes = Workers("handshakes")
_revoked: dict[str, frozenset[int]] = {}
"""Folder to the list of the revoked that was read there last: one that is not the authority's changes nothing."""
log = logging.getLogger(__name__)


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
            gone = await _certificates.run(_read_revoked, site.conf["LAVA_TLS_DIR"], ca)
    except TimeoutError:
        raise NotMaster(f"{site.conf['LAVA_TLS_DIR']}: the certificates cannot be read") from None
    except OSError as e:
        raise NotMaster(f"{e.filename}: {e.strerror}") from None
    except ValueError as e:
        raise NotMaster(f"{site.conf['LAVA_TLS_DIR']}: {e}") from None
    if gone:
        try:
            async with asyncio.timeout(2 * SHAKING):
                ca = await _handshakes.run(_shown, target, site, gone)
        except (OSError, ValueError) as e:
            raise NotMaster(f"{target}: {e}") from None
    credentials = grpc.ssl_channel_credentials(ca, key, cert)
    options: list[tuple[str, object]] = list(_OPTIONS)
    if name := site.conf.get("LAVA_TLS_MASTER_NAME"):
        options.append(("grpc.ssl_target_name_override", name))
    return Link(grpc.aio.secure_channel(target, credentials, options=options))


async def why_no_handshake(site: Site, why: str) -> str:
    """``why`` with what is wrong with this host's own certificate: a master that does not take it says nothing but goodbye."""
    files = files_of(site)
    if not files or not any(word in why for word in _BROKEN_OFF):
        return why
    try:
        ended = await _certificates.run(_ended, files[2])
    except (OSError, ValueError) as e:
        return f"{why}; {files[2]}: {e}"
    return f"{why}; the certificate {files[2]} has ended" if ended else why


def _ended(path: str) -> bool:
    from cryptography import x509  # where there is TLS that fails: without it an agent starts faster

    with open(path, "rb") as file:
        found = x509.load_pem_x509_certificate(file.read())
    return found.not_valid_after_utc.timestamp() <= time.time()


def files_of(site: Site) -> tuple[str, ...]:
    """The files of this agent's certificate; () where it has none."""
    folder = site.conf.get("LAVA_TLS_DIR", "")
    return tuple(os.path.join(folder, name) for name in ("ca.crt", f"{site.host}.key", f"{site.host}.crt")) if folder else ()


def stamp(site: Site) -> tuple[tuple[int, int], ...]:
    """Changes when the files of the certificate, or the list of the revoked, are replaced, or may be read by others."""
    found = []
    with contextlib.suppress(OSError):
        stat = os.stat(os.path.join(site.conf.get("LAVA_TLS_DIR", ""), revoked.FILE))
        found.append((stat.st_ctime_ns, stat.st_ino))
    for path in files_of(site):
        try:
            stat = os.stat(path)
        except OSError:
            return ()
        found.append((stat.st_ctime_ns, stat.st_ino))
    return tuple(found)


def _credentials(site: Site) -> tuple[bytes, bytes, bytes]:
    found = []
    for path in files_of(site):
        with open(path, "rb") as file:
            found.append(file.read())
    return found[0], found[1], found[2]


def _read_revoked(folder: str, ca: bytes) -> frozenset[int]:
    """The serial numbers that hold no more. Raises OSError, ValueError where there is a list that was never good."""
    try:
        with open(os.path.join(folder, revoked.FILE), "rb") as file:
            _revoked[folder] = revoked.serials(ca, file.read())
    except FileNotFoundError:
        _revoked.pop(folder, None)
    except ValueError as error:
        if folder not in _revoked:
            raise
        log.error("LAVA_TLS_DIR %s: %s; the former one stays in force", folder, error)
    return _revoked.get(folder, frozenset())


def _shown(target: str, site: Site, gone: frozenset[int]) -> bytes:
    """The certificate, in PEM, of who listens at ``target``. Raises OSError, and ValueError where it is revoked."""
    ca, key, cert = files_of(site)
    context = ssl.create_default_context(cafile=ca)
    # Python 3.13 and later refuse certificates without key identifiers, which gRPC takes and earlier versions made
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.load_cert_chain(cert, key)
    context.set_alpn_protocols(["h2"])
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    with socket.create_connection((host, int(port)), SHAKING) as link:
        link.settimeout(SHAKING)
        with context.wrap_socket(link, server_hostname=site.conf.get("LAVA_TLS_MASTER_NAME") or host) as tls:
            told, whole = tls.getpeercert(), tls.getpeercert(binary_form=True)
    if not told or not whole:
        raise ValueError("it shows no certificate")
    serial = int(str(told["serialNumber"]), 16)
    if serial in gone:
        raise ValueError(f"certificate {serial:x} is revoked")
    return ssl.DER_cert_to_PEM_cert(whole).encode()

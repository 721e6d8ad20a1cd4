"""The certificates in LAVA_TLS_DIR, which may be replaced while lavad runs: ``ca.crt``, ``master.crt``, ``master.key``, and
``ca.crl``, the list of those that are revoked.

Rule: what cannot be read, or does not fit together, changes nothing; it is said, and what was read before stays in force.
cryptography is imported where there is TLS: without it a master starts faster.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from proto.daemon import grpc_threads, revoked

if TYPE_CHECKING:
    import grpc
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

log = logging.getLogger(__name__)

FILES = ("master.key", "master.crt", "ca.crt")
DAY = 86400.0


Stamp = tuple[tuple[int, int, int], ...]


class BadCertificates(Exception):
    """Why the files cannot be used, in one line."""


class Certificate(msgspec.Struct, frozen=True):
    """What is asked of a peer's certificate. ``ends``: seconds since the epoch."""

    names: tuple[str, ...]
    serial: int
    ends: float


class _Read(msgspec.Struct, frozen=True):
    stamp: Stamp
    config: grpc.ServerCertificateConfiguration
    ends: dict[str, float]
    revoked: frozenset[int]


class Certificates:
    """Those of one folder. Raises BadCertificates where they cannot be read at the start."""

    def __init__(self, folder: str, warn_days: float) -> None:
        self.folder = folder
        self._warn = warn_days * DAY
        self._read = self._load()
        self._failed: Stamp | None = None
        self.unread = ""
        """Why the files as they are now are not in force; "": they are."""

    def credentials(self) -> grpc.ServerCredentials:
        """Of the server, which asks for the certificates that are in force at each connection."""
        import grpc

        return grpc.dynamic_ssl_server_credentials(self._read.config, lambda: self._read.config, True)

    def reload(self) -> bool:
        """Read the files where they have changed; whether they were taken up."""
        stamp = self._stamp()
        if stamp in (self._read.stamp, self._failed):
            return False
        try:
            self._read = self._load()
        except BadCertificates as error:
            self._failed, self.unread = stamp, f"{error}; the former certificates stay in force"
            log.error("%s", self.unread)
            return False
        self._failed, self.unread = None, ""
        log.info("the certificates in %s were read again, %d are revoked", self.folder, len(self._read.revoked))
        return True

    def why_not(self, peer: Certificate, now: float) -> str:
        """Why a certificate that the authority has signed does not hold; "": it holds."""
        if peer.serial in self._read.revoked:
            return f"certificate {peer.serial:x} is revoked"
        return "" if now < peer.ends else f"certificate {peer.serial:x} has ended"

    def ends(self, peers: Iterable[Certificate]) -> dict[str, float]:
        """When each certificate ends that this master has or has seen, by the name in it, in seconds since the epoch."""
        return self._read.ends | {peer.names[0]: peer.ends for peer in peers if peer.names}

    def ending(self, peers: Iterable[Certificate], now: float) -> list[str]:
        """A line for each certificate that ends soon or has ended, the first to end first."""
        soon = sorted((ends, name) for name, ends in self.ends(peers).items() if ends < now + self._warn)
        when = [f"ends in {int((ends - now) // DAY)} days" if ends > now else "has ended" for ends, _ in soon]
        return [f"the certificate of {name} {text}" for (_, name), text in zip(soon, when, strict=True)]

    def _stamp(self) -> Stamp:
        """Changes when a file is replaced or written to, or may be read by others."""
        found = []
        for name in (*FILES, revoked.FILE):
            try:
                stat = os.stat(Path(self.folder, name))
                found.append((stat.st_ctime_ns, stat.st_mtime_ns, stat.st_ino))
            except OSError:
                found.append((0, 0, 0))
        return tuple(found)

    def _load(self) -> _Read:
        grpc_threads.load()

        import grpc
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        stamp = self._stamp()
        try:
            key, own, ca = (Path(self.folder, name).read_bytes() for name in FILES)
            found, authority = x509.load_pem_x509_certificate(own), x509.load_pem_x509_certificate(ca)
            if _public(load_pem_private_key(key, None).public_key()) != _public(found.public_key()):
                raise BadCertificates(f"LAVA_TLS_DIR {self.folder}: master.key is not the key of master.crt")
            ends = {"master": _end(found), "the authority": _end(authority)}
            config = grpc.ssl_server_certificate_configuration([(key, own)], ca)
            return _Read(stamp, config, ends, self._revoked(ca))
        except OSError as error:
            raise BadCertificates(f"LAVA_TLS_DIR: {error.filename}: {error.strerror}") from None
        except (ValueError, TypeError) as error:
            raise BadCertificates(f"LAVA_TLS_DIR: {error}") from None

    def _revoked(self, authority: bytes) -> frozenset[int]:
        try:
            return revoked.serials(authority, Path(self.folder, revoked.FILE).read_bytes())
        except FileNotFoundError:
            return frozenset()
        except revoked.BadList as error:
            raise BadCertificates(f"LAVA_TLS_DIR {self.folder}: {error}") from None


@lru_cache(4096)
def certificate_of(pem: bytes) -> Certificate:
    """A peer's certificate, whose signature TLS has checked. Raises ValueError."""
    from cryptography import x509

    found = x509.load_pem_x509_certificate(pem)
    names = found.subject.get_attributes_for_oid(x509.oid.NameOID.COMMON_NAME)
    return Certificate(tuple(str(name.value) for name in names), found.serial_number, _end(found))


def _end(certificate: x509.Certificate) -> float:
    return certificate.not_valid_after_utc.timestamp()


def _public(key: PublicKeyTypes) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)

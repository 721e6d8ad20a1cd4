"""The key and certificate of one attempt, for the link between its hosts; derived, so that every order has the same.

Ed25519 signs deterministically; the key comes from the cluster's secret and the attempt's uid by HKDF (RFC 5869).
cryptography is imported for the first of them: most jobs need none, and a master starts faster.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_START = datetime(2020, 1, 1, tzinfo=UTC)


def _derive(secret: bytes, uid: str, purpose: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=purpose + uid.encode()).derive(secret)


@lru_cache(maxsize=1024)
def credentials(secret: bytes, uid: str) -> tuple[bytes, bytes]:
    """(private key PEM, self-signed certificate PEM) of an attempt."""
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.x509.oid import NameOID

    key = Ed25519PrivateKey.from_private_bytes(_derive(secret, uid, b"link "))
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"lava attempt {uid}"[:64])])
    serial = int.from_bytes(hashlib.sha256(uid.encode()).digest()[:8], "big") | 1
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(_START)
        .not_valid_after(_START + timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, None)
    )
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return private, certificate.public_bytes(serialization.Encoding.PEM)


def holder_identity(secret: bytes, host: str) -> tuple[bytes, bytes, bytes]:
    """(private key PEM, certificate PEM, secret of tokens) of a host that holds copies of checkpoints for jobs of others."""
    key, cert = credentials(secret, f"copies {host}")
    return key, cert, hmac.digest(_extracted(secret), b"copies " + host.encode() + b"\x01", "sha256")


@lru_cache(maxsize=1024)
def holder_print(secret: bytes, host: str) -> str:
    """The SHA-256 of that certificate."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(holder_identity(secret, host)[1].decode())).hexdigest()


def holder_token(secret: bytes, host: str, name: str) -> str:
    """What opens the copies of one job (``USER/JOB``) on a host, and nothing else: a signature, the job and its user."""
    user, _, job = name.rpartition("/")
    named = f"{job} {user}"
    return f"{hmac.digest(holder_identity(secret, host)[2], named.encode(), 'sha256').hex()} {named}"


@lru_cache(maxsize=8)
def _extracted(secret: bytes) -> bytes:
    """HKDF's first half, which is the same for all attempts."""
    return hmac.digest(bytes(32), secret, "sha256")


_INNER, _OUTER = bytes(one ^ 0x36 for one in range(256)), bytes(one ^ 0x5C for one in range(256))
"""HMAC's two pads (RFC 2104), for ``bytes.translate``."""
_EMPTY = hashlib.sha256()


@lru_cache(maxsize=8)
def _begun(secret: bytes) -> tuple[hashlib._Hash, hashlib._Hash]:
    """The inner and the outer hash of an HMAC with the key ``_extracted``, of which nothing is signed yet."""
    key = _extracted(secret).ljust(64, b"\0")
    return hashlib.sha256(key.translate(_INNER)), hashlib.sha256(key.translate(_OUTER))


def token(secret: bytes, uid: str) -> str:
    """The job's own token: it starts tasks inside this attempt's allocation, and nothing else.

    It is the HMAC of the uid with what ``_derive`` gives for ``token``. As every start needs one, both HMACs of it are made of
    their hashes, the first of hashes that have taken the key in already, and each is a copy, as a new hash is looked up by its
    name: half of what ``hmac.digest`` takes.
    """
    name = uid.encode()
    begun = _begun(secret)
    inner, outer = begun[0].copy(), begun[1].copy()
    inner.update(b"token " + name + b"\x01")
    outer.update(inner.digest())
    key = outer.digest().ljust(64, b"\0")
    inner, outer = _EMPTY.copy(), _EMPTY.copy()
    inner.update(key.translate(_INNER) + name)
    outer.update(key.translate(_OUTER) + inner.digest())
    return outer.hexdigest()

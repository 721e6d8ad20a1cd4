"""The key and certificate of one attempt, for the link between its hosts; derived, so that every order has the same.

Ed25519 signs deterministically; the key comes from the cluster's secret and the attempt's uid by HKDF (RFC 5869).
cryptography is imported for the first of them: most jobs need none, and a master starts faster.
"""

from __future__ import annotations

import hashlib
import hmac
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


@lru_cache(maxsize=8)
def _extracted(secret: bytes) -> bytes:
    """HKDF's first half, which is the same for all attempts."""
    return hmac.digest(bytes(32), secret, "sha256")


def token(secret: bytes, uid: str) -> str:
    """The job's own token: it starts tasks inside this attempt's allocation, and nothing else.

    Its key is what ``_derive`` gives for ``token``; as every start needs one, it is made by two HMACs in C.
    """
    name = uid.encode()
    key = hmac.digest(_extracted(secret), b"token " + name + b"\x01", "sha256")
    return hmac.digest(key, name, "sha256").hex()

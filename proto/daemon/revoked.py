"""The list of revoked certificates (``ca.crl``), which masters and agents read alike.

cryptography is imported where there is such a list: without it a daemon starts faster.
"""

from __future__ import annotations

FILE = "ca.crl"
"""In LAVA_TLS_DIR."""


class BadList(ValueError):
    """The list is not signed by the authority."""


def serials(authority: bytes, revoked: bytes) -> frozenset[int]:
    """The serial numbers in a list; both in PEM. Raises BadList, ValueError for what does not read."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    found = x509.load_pem_x509_crl(revoked)
    key = x509.load_pem_x509_certificate(authority).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey | rsa.RSAPublicKey) or not found.is_signature_valid(key):
        raise BadList(f"{FILE} is not signed by the authority of ca.crt")
    return frozenset(entry.serial_number for entry in found)

"""``lava certs``: a certificate authority of the site's own, and a certificate for the masters and for each host's agent.

lavad reads the role from the common name: ``master``, or ``agent:HOST``. Keys are P-256 (gRPC takes no
Ed25519 certificates) and readable by their owner only. Keep ``ca.key`` off the hosts: whoever has it can be any host.
"""

from __future__ import annotations

import ipaddress
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

AUTHORITY_DAYS, MEMBER_DAYS = 3650, 825


def _write(path: Path, data: bytes, mode: int) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)


def _keep(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    _write(folder / f"{name}.key", private, 0o600)
    _write(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
    )


def _authority(folder: Path, cluster: str) -> tuple[ec.EllipticCurvePrivateKey, str]:
    """(key, name) of the authority in the folder; made where it is missing. Raises ValueError for a key of another kind."""
    issuer = f"lava {cluster} authority"
    path = folder / "ca.key"
    if path.exists():
        key = serialization.load_pem_private_key(path.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{path}: not a P-256 key")
        return key, issuer
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(issuer, issuer, key, AUTHORITY_DAYS)
    certificate = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(key, hashes.SHA256())
    _keep(folder, "ca", key, certificate)
    return key, issuer


def _names(addresses: list[str]) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = []
    for address in addresses:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    return x509.SubjectAlternativeName(names)


def make(folder: Path, cluster: str, masters: list[str], hosts: list[str]) -> list[str]:
    """Write the certificates and keys that are missing: the authority, ``master`` (valid for the given names and addresses), each
    host. Gives the names of those made. Raises OSError, ValueError.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority, issuer = _authority(folder, cluster)
    wanted = [("master", "master", masters), *((host, f"agent:{host}", [host]) for host in hosts)]
    made = []
    for name, role, addresses in wanted:
        if (folder / f"{name}.crt").exists():
            continue
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(role, issuer, key, MEMBER_DAYS)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_names(addresses), critical=False)
        _keep(folder, name, key, builder.sign(authority, hashes.SHA256()))
        made.append(name)
    return made

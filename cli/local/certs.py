"""``lava certs``: a certificate authority of the site's own, certificates for the masters and each host's agent, their renewal,
and the list of those that hold no more (``ca.crl``).

lavad reads the role from the common name: ``master``, or ``agent:HOST``. Keys are P-256 (gRPC takes no
Ed25519 certificates) and readable by their owner only. Keep ``ca.key`` off the hosts: whoever has it can be any host.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from proto.daemon.revoked import FILE
from proto.whole_file import replace_file

AUTHORITY_DAYS, MEMBER_DAYS = 3650, 825
AUTHORITY, MASTER, ISSUED = "ca", "master", "issued"
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_USES = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
Authority = tuple[ec.EllipticCurvePrivateKey, str]
"""Its key and name."""


def _keep(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    replace_file(str(folder / f"{name}.key"), private, 0o600)
    replace_file(str(folder / f"{name}.crt"), certificate.public_bytes(serialization.Encoding.PEM))


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


def _authority(folder: Path) -> Authority:
    """The authority in the folder. Raises ValueError where it, or its key, is not there or is no P-256 key; OSError."""
    path = folder / f"{AUTHORITY}.key"
    if not path.exists():
        raise ValueError(f"{path}: the key of the authority is not there; certificates are made where it is kept")
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except (TypeError, ValueError):  # TypeError: with a password
        raise ValueError(f"{path}: not a private key in PEM without a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path}: not a P-256 key")
    made = _read(folder, AUTHORITY)
    if made.public_key() != key.public_key():
        raise ValueError(f"{path}: not the key of {AUTHORITY}.crt beside it")
    names = made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names:
        raise ValueError(f"{folder / AUTHORITY}.crt: its subject has no common name")
    return key, str(names[0].value)


def _new_authority(folder: Path, cluster: str) -> Authority:
    """Makes one; ``folder`` must have none."""
    issuer = f"lava {cluster} authority"
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(issuer, issuer, key, AUTHORITY_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    _keep(folder, AUTHORITY, key, _signed(builder, key, key, ("key_cert_sign", "crl_sign")))
    return key, issuer


def _read(folder: Path, name: str) -> x509.Certificate:
    """Raises ValueError that names the file; OSError."""
    path = folder / f"{name}.crt"
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError:
        raise ValueError(f"{path}: not a certificate in PEM") from None


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signing: ec.EllipticCurvePrivateKey, uses: Collection[str]
) -> x509.Certificate:
    """With what RFC 5280 asks of every certificate, which Python 3.13 and later look for: whose keys these are, and ``uses``."""
    usage = x509.KeyUsage(**dict.fromkeys(_USES, False) | dict.fromkeys(uses, True))
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    builder = builder.add_extension(authority, critical=False).add_extension(usage, critical=True)
    return builder.sign(signing, hashes.SHA256())


def _names(addresses: list[str]) -> x509.SubjectAlternativeName:
    names: list[x509.GeneralName] = []
    for address in addresses:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        except ValueError:
            names.append(x509.DNSName(address))
    return x509.SubjectAlternativeName(names)


def _check(hosts: Iterable[str]) -> None:
    """Raises ValueError: hosts name files here, beside those of the authority and the masters."""
    for host in hosts:
        if not _HOST.fullmatch(host) or host in (AUTHORITY, MASTER):
            raise ValueError(f"{host}: no certificate is made for a host of this name")


def make(folder: Path, cluster: str, masters: list[str], hosts: list[str]) -> list[str]:
    """Write the certificates and keys that are missing: the authority in a folder without certificates, ``master`` (valid for the
    given names and addresses), each host. Gives the names of those made. Raises OSError, ValueError.
    """
    _check(hosts)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # beside a certificate that another authority has signed a new one would fit nothing that the site has
    begins = not (folder / f"{AUTHORITY}.key").exists() and not _beside(folder)
    authority = _new_authority(folder, cluster) if begins else _authority(folder)
    wanted = [(MASTER, _names(masters))] if masters else []
    wanted += [(host, _names([host])) for host in hosts]
    made = []
    for name, addresses in wanted:
        if not (folder / f"{name}.crt").exists():
            _issue(folder, authority, name, addresses)
            made.append(name)
    return made


def _beside(folder: Path) -> bool:
    """Whether the folder has certificates of an authority of lava. Raises ValueError where it has those of others alone."""
    there = sorted(path.name for path in folder.glob("*.crt"))
    if there and f"{AUTHORITY}.crt" not in there and not (folder / ISSUED).exists():
        listed = ", ".join([*there[:3], *(["..."] if there[3:] else [])])
        raise ValueError(
            f"{folder}: it has no {AUTHORITY}.crt, but other certificates ({listed}): an authority is made in an empty folder"
        )
    return bool(there)


def renew(folder: Path, names: list[str]) -> list[str]:
    """Write new keys and certificates in the place of those named, or of all, for the same names and addresses; gives the names.

    The former ones hold until they end. Raises OSError, ValueError; then none is renewed.
    """
    _check(name for name in names if name != MASTER)
    authority = _authority(folder)
    names = names or sorted(path.stem for path in folder.glob("*.crt") if path.stem != AUTHORITY)
    for name in names:
        if not (folder / f"{name}.crt").exists():
            raise ValueError(f"{name}: there is no certificate of it in {folder}")
    former = {name: _addresses(folder, name) for name in names}
    for name, addresses in former.items():
        _issue(folder, authority, name, addresses)
    return names


def _addresses(folder: Path, name: str) -> x509.SubjectAlternativeName:
    """The names and addresses that a certificate is for. Raises ValueError that names the file; OSError."""
    try:
        return _read(folder, name).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        raise ValueError(f"{folder / name}.crt: it is for no name or address, as none of `lava certs` is") from None


def revoke(folder: Path, hosts: list[str]) -> Path:
    """Add all certificates that these hosts ever got, and that have not ended, to the list of the revoked; removes their files.

    Gives the list's path: it goes to LAVA_TLS_DIR of the masters and of all hosts. Raises OSError, ValueError.
    """
    key, issuer = _authority(folder)
    path = folder / FILE
    now = datetime.now(UTC)
    try:
        former = list(x509.load_pem_x509_crl(path.read_bytes())) if path.exists() else []
    except ValueError:
        raise ValueError(f"{path}: not a list of revoked certificates in PEM") from None
    serials = {serial for name, serial in _issued(folder) if name in hosts}
    for host in hosts:
        if host == AUTHORITY or not any(name == host for name, _ in _issued(folder)):
            raise ValueError(f"{host}: no certificate was made for it in {folder}")
    builder = x509.CertificateRevocationListBuilder().issuer_name(_name(issuer)).last_update(now)
    builder = builder.next_update(now + timedelta(days=AUTHORITY_DAYS))
    for entry in former:
        builder = builder.add_revoked_certificate(entry)
    for serial in sorted(serials - {entry.serial_number for entry in former}):
        builder = builder.add_revoked_certificate(
            x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
        )
    replace_file(str(path), builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    for host in hosts:
        for suffix in ("crt", "key"):
            (folder / f"{host}.{suffix}").unlink(missing_ok=True)
    return path


def _issue(folder: Path, authority: Authority, name: str, addresses: x509.SubjectAlternativeName) -> None:
    signing, issuer = authority
    role, use = (
        (MASTER, ExtendedKeyUsageOID.SERVER_AUTH) if name == MASTER else (f"agent:{name}", ExtendedKeyUsageOID.CLIENT_AUTH)
    )
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(role, issuer, key, MEMBER_DAYS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=True)
    builder = builder.add_extension(addresses, critical=False)
    certificate = _signed(builder, key, signing, ("digital_signature",))
    with (folder / ISSUED).open("a") as file:
        file.write(f"{certificate.serial_number:x} {name}\n")
    _keep(folder, name, key, certificate)


def _issued(folder: Path) -> list[tuple[str, int]]:
    """(name, serial number) of each certificate that was made here, also before the list of them was kept."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for number, line in enumerate((folder / ISSUED).read_text().splitlines(), 1):
            try:
                serial, name = line.split()
                found.append((name, int(serial, 16)))
            except ValueError:
                raise ValueError(f"{folder / ISSUED}:{number}: not the number and the name of a certificate") from None
    for path in folder.glob("*.crt"):
        found.append((path.stem, _read(folder, path.stem).serial_number))
    return found

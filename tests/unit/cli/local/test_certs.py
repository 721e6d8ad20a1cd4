"""``lava certs``: a certificate says one role and serves for that alone; it is renewed for the same names, revoked for good."""

from __future__ import annotations

import contextlib
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cli.lava import main
from cli.local import certs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An authority with the certificates of the masters and two hosts."""
    found = tmp_path / "certs"
    found.mkdir()
    certs.make(found, "c1", ["m.example.org", "10.0.0.1"], ["a", "b"])
    return found


def _read(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())


def _revoked(folder: Path) -> set[int]:
    return {entry.serial_number for entry in x509.load_pem_x509_crl((folder / "ca.crl").read_bytes())}


def _strict(folder: Path, name: str, protocol: ssl._SSLMethod) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    context.load_verify_locations(folder / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


@pytest.mark.parametrize(
    ("name", "role", "use"),
    [("master", "master", ExtendedKeyUsageOID.SERVER_AUTH), ("a", "agent:a", ExtendedKeyUsageOID.CLIENT_AUTH)],
)
def test_a_certificate_is_for_one_role(folder: Path, name: str, role: str, use: x509.ObjectIdentifier) -> None:
    found = _read(folder, name)
    assert [one.value for one in found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [role]
    assert list(found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [use]
    assert found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).critical
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    found.verify_directly_issued_by(_read(folder, "ca"))


def test_masters_and_hosts_know_each_other_by_the_strictest_check(folder: Path) -> None:
    """That of Python 3.13 and later: keys are identified, and have the uses that certificates say."""
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = _strict(folder, "master", ssl.PROTOCOL_TLS_SERVER).wrap_bio(one, other, server_side=True)
    client = _strict(folder, "a", ssl.PROTOCOL_TLS_CLIENT).wrap_bio(other, one, server_hostname="m.example.org")
    for side in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    names = [(side.getpeercert() or {}).get("subject") for side in (server, client)]
    assert names == [((("commonName", "agent:a"),),), ((("commonName", "master"),),)]


def test_what_is_there_is_not_made_again(folder: Path) -> None:
    former = _read(folder, "a")
    assert certs.make(folder, "c1", ["other"], ["a", "c"]) == ["c"]
    assert _read(folder, "a") == former


def test_a_renewed_certificate_has_the_same_names_another_key_and_number(folder: Path) -> None:
    former = _read(folder, "master")
    assert certs.renew(folder, []) == ["a", "b", "master"]
    found = _read(folder, "master")
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["m.example.org"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("10.0.0.1")]
    assert (found.subject, found.issuer) == (former.subject, former.issuer)
    assert found.serial_number != former.serial_number
    assert found.public_key() != former.public_key()
    assert (folder / "master.key").stat().st_mode & 0o777 == 0o600
    found.verify_directly_issued_by(_read(folder, "ca"))


def test_all_certificates_that_a_host_ever_got_are_revoked_and_stay_so(folder: Path) -> None:
    former = _read(folder, "a").serial_number
    certs.renew(folder, ["a"])
    newer = _read(folder, "a").serial_number
    assert certs.revoke(folder, ["a"]) == folder / "ca.crl"
    assert _revoked(folder) == {former, newer}
    assert not (folder / "a.crt").exists()
    assert not (folder / "a.key").exists()
    certs.make(folder, "c1", [], ["a"])
    assert _read(folder, "a").serial_number not in _revoked(folder)
    other = _read(folder, "b").serial_number
    certs.revoke(folder, ["b"])
    assert _revoked(folder) == {former, newer, other}
    signed = x509.load_pem_x509_crl((folder / "ca.crl").read_bytes())
    assert signed.is_signature_valid(_read(folder, "ca").public_key())  # type: ignore[arg-type]


def test_a_certificate_of_before_the_list_of_those_made_is_revoked_too(folder: Path) -> None:
    (folder / "issued").unlink()
    serial = _read(folder, "b").serial_number
    certs.revoke(folder, ["b"])
    assert _revoked(folder) == {serial}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--revoke", "nobody"], "nobody: no certificate was made for it in "),
        (["--revoke", "ca"], "ca: no certificate was made for it in "),
        (["--hosts", "c", "a/b"], "a/b: no certificate is made for a host of this name"),
        (["--hosts", "../c"], "../c: no certificate is made for a host of this name"),
        (["--hosts", "master"], "master: no certificate is made for a host of this name"),
        (["--renew", "a", "nobody"], "nobody: there is no certificate of it in "),
        (["--renew", "ca"], "ca: no certificate is made for a host of this name"),
        ([], "say --master, --hosts, --renew or --revoke"),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()}
    assert main(["certs", "--out", str(folder), *words]) == 1
    assert capsys.readouterr().err.startswith(f"lava certs: {why}")
    assert {path: path.read_bytes() for path in folder.parent.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("words", [["--hosts", "c"], ["--renew"], ["--revoke", "a"]])
@pytest.mark.parametrize(
    ("key", "why"),
    [
        (None, "the key of the authority is not there; certificates are made where it is kept"),
        ("words", "not a private key in PEM without a password"),
        ("another's", "not the key of ca.crt beside it"),
    ],
)
def test_the_authority_is_never_made_again(
    folder: Path, words: list[str], key: str | None, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its certificate is on every host of the site: those of another would fit none."""
    (folder / "ca.key").unlink()
    if key == "words":
        (folder / "ca.key").write_text("words")
    elif key:
        (folder / "ca.key").write_bytes((folder / "a.key").read_bytes())
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(["certs", "--out", str(folder), *words]) == 1
    assert capsys.readouterr().err == f"lava certs: {folder}/ca.key: {why}\n"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("words", [["--renew"], ["--revoke", "a"]])
def test_what_was_never_made_is_neither_renewed_nor_revoked(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "missing"):
        assert main(["certs", "--out", str(tmp_path / name), *words]) == 1
        assert capsys.readouterr().err.startswith(f"lava certs: {tmp_path / name}/ca.key: the key of the authority is not there")
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]


def test_no_authority_is_begun_beside_certificates_of_others(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("web", "mail"):
        (tmp_path / f"{name}.crt").write_bytes((folder / "a.crt").read_bytes())
    assert main(["certs", "--out", str(tmp_path), "--hosts", "a"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        f"lava certs: {tmp_path}: it has no ca.crt, but other certificates (mail.crt, web.crt): an authority is made"
    )
    assert not (tmp_path / "ca.key").exists()


def test_a_broken_list_of_those_made_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As a full disk leaves it: what a host ever got is not known from it."""
    issued = folder / "issued"
    issued.write_text(f"{issued.read_text()}12ab")
    assert main(["certs", "--out", str(folder), "--revoke", "a"]) == 1
    number = len(issued.read_text().splitlines())
    assert capsys.readouterr().err == f"lava certs: {issued}:{number}: not the number and the name of a certificate\n"


def test_a_file_that_is_no_certificate_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "b.crt").write_text("words")
    former = _read(folder, "a")
    assert main(["certs", "--out", str(folder), "--renew"]) == 1
    assert capsys.readouterr().err == f"lava certs: {folder}/b.crt: not a certificate in PEM\n"
    assert _read(folder, "a") == former


def test_a_certificate_for_no_name_is_not_renewed_and_leaves_all_as_they_are(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "b.crt").write_bytes((folder / "ca.crt").read_bytes())
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert main(["certs", "--out", str(folder), "--renew"]) == 1
    assert capsys.readouterr().err.startswith(f"lava certs: {folder}/b.crt: it is for no name or address")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_list_of_the_revoked_that_does_not_read_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "ca.crl").write_text("words")
    assert main(["certs", "--out", str(folder), "--revoke", "a"]) == 1
    assert capsys.readouterr().err == f"lava certs: {folder}/ca.crl: not a list of revoked certificates in PEM\n"
    assert (folder / "a.crt").exists()


def test_an_authority_without_a_common_name_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One that the site has made by other means."""
    key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    nameless, former = x509.Name([]), _read(folder, "ca")
    builder = x509.CertificateBuilder().subject_name(nameless).issuer_name(nameless).public_key(key.public_key())
    builder = builder.serial_number(former.serial_number).not_valid_before(former.not_valid_before_utc)
    made = builder.not_valid_after(former.not_valid_after_utc).sign(key, hashes.SHA256())
    (folder / "ca.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    assert main(["certs", "--out", str(folder), "--hosts", "c"]) == 1
    assert capsys.readouterr().err == f"lava certs: {folder}/ca.crt: its subject has no common name\n"

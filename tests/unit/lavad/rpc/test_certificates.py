"""The master's certificates: replaced files are taken up if they fit together, what holds no more is told, and what ends soon."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cli.local import certs
from lavad.hosts.sessions import Session, Sessions
from lavad.rpc.certificate_watch import CertificateWatch
from lavad.rpc.certificates import DAY, BadCertificates, Certificates, certificate_of

NOBODY = 65534


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The masters' folder, with a host's certificate beside."""
    certs.make(tmp_path, "c1", ["m"], ["a"])
    return tmp_path


@contextmanager
def _without_rights(folder: Path) -> Iterator[None]:
    """As an account that file modes hold for, and that has the folder."""
    if os.geteuid() != 0:
        yield
        return
    for path in (folder, *folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_certificate_holds_until_it_ends_or_is_revoked(folder: Path) -> None:
    known = Certificates(str(folder), 30)
    peer = certificate_of((folder / "a.crt").read_bytes())
    assert peer.names == ("agent:a",)
    assert known.why_not(peer, peer.ends - 1) == ""
    assert known.why_not(peer, peer.ends) == f"certificate {peer.serial:x} has ended"
    certs.revoke(folder, ["a"])
    assert known.why_not(peer, 0.0) == ""
    assert known.reload()
    assert known.why_not(peer, 0.0) == f"certificate {peer.serial:x} is revoked"
    assert not known.reload()


def test_a_key_that_does_not_fit_changes_nothing(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    known = Certificates(str(folder), 30)
    former = (folder / "master.key").read_bytes()
    (folder / "master.key").write_bytes((folder / "a.key").read_bytes())
    assert not known.reload()
    assert not known.reload()  # said once
    why = f"LAVA_TLS_DIR {folder}: master.key is not the key of master.crt; the former certificates stay in force"
    assert (caplog.messages, known.unread) == ([why], why)
    with pytest.raises(BadCertificates, match=r"master\.key is not the key of master\.crt"):
        Certificates(str(folder), 30)
    (folder / "master.key").write_bytes(former)
    os.utime(folder / "master.key", ns=(1, 1))
    assert known.reload()
    assert known.unread == ""


def test_a_key_that_lavads_account_may_read_at_last_is_taken_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after `chown lavad master.key`, which changes nothing else of the file."""
    monkeypatch.chdir(folder)  # what is above may be root's alone
    with _without_rights(folder):
        known = Certificates(".", 30)
        certs.renew(Path("."), ["master"])
        Path("master.key").chmod(0)
        assert not known.reload()
        assert known.unread == "LAVA_TLS_DIR: master.key: Permission denied; the former certificates stay in force"
        Path("master.key").chmod(0o600)
        assert known.reload()


@pytest.mark.parametrize("text", [b"", b"no list"])
def test_a_broken_list_of_the_revoked_is_no_empty_one(folder: Path, text: bytes) -> None:
    (folder / "ca.crl").write_bytes(text)
    with pytest.raises(BadCertificates):
        Certificates(str(folder), 30)


def test_a_list_of_another_authority_is_not_believed(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    certs.make(other, "c1", [], ["a"])
    (folder / "ca.crl").write_bytes(certs.revoke(other, ["a"]).read_bytes())
    with pytest.raises(BadCertificates, match=r"ca\.crl is not signed by the authority of ca\.crt"):
        Certificates(str(folder), 30)


def test_what_ends_soon_is_told_the_first_to_end_first(folder: Path) -> None:
    known = Certificates(str(folder), 30)
    peer = certificate_of((folder / "a.crt").read_bytes())
    assert set(known.ends([peer])) == {"master", "the authority", "agent:a"}
    assert known.ending([peer], peer.ends - 31 * DAY) == []
    told = known.ending([peer], peer.ends - 10.5 * DAY)
    assert sorted(told) == ["the certificate of agent:a ends in 10 days", "the certificate of master ends in 10 days"]
    assert known.ending([peer], peer.ends - 1)[0].endswith("ends in 0 days")
    assert "the certificate of agent:a has ended" in known.ending([peer], peer.ends)


def test_a_host_whose_certificate_has_ended_is_told_of_until_it_is_there_with_another_or_leaves(folder: Path) -> None:
    known, sessions = Certificates(str(folder), 30), Sessions()
    pem = (folder / "a.crt").read_bytes()
    now, hosts = certificate_of(pem).ends, {"a"}
    watch = CertificateWatch(known, sessions, lambda: now, lambda: None, hosts.__contains__)
    sessions.open(Session("a", 0, certificate=pem))
    watch.look()
    assert not sessions.rows
    for _ in range(2):
        watch.look()
        assert "the certificate of agent:a has ended" in watch.ending
    hosts.clear()
    watch.look()
    assert "the certificate of agent:a has ended" not in watch.ending
    hosts.add("a")
    sessions.open(Session("a", 0, certificate=pem))
    watch.look()
    assert "the certificate of agent:a has ended" in watch.ending
    now -= 20 * DAY
    sessions.open(Session("a", 0, certificate=pem))
    watch.look()
    assert list(sessions.rows) == ["a"]
    assert "the certificate of agent:a has ended" not in watch.ending


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCertificates, match=r"LAVA_TLS_DIR: .*master\.key"):
        Certificates(str(tmp_path), 30)

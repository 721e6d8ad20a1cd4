"""An agent says nothing to a listener that is not proven to be a master."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes

from agent.launch.site import Site
from agent.master.channel import NotMaster, connect
from agent.master.link import open_session
from cli.local import certs
from config.read.params import settings_of
from proto import agent_pb2 as pb
from proto import localsocket
from tests.support.daemons.fake_master import FakeMaster


def _site(folder: Path, **conf: str) -> Site:
    return Site(host="h1", run_dir=str(folder), spool="", conf_dir="", conf=conf, settings=settings_of(conf))


def _why_not(target: str, site: Site) -> str:
    async def dial() -> None:
        link = await connect(target, site)
        await link.close()

    try:
        asyncio.run(dial())
    except NotMaster as why:
        return str(why)
    return ""


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "localhost"])
def test_no_port_is_dialled_without_certificates(tmp_path: Path, address: str) -> None:
    assert "LAVA_TLS_DIR" in _why_not(f"{address}:16879", _site(tmp_path))


def test_a_stranger_on_the_masters_port_hears_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        stranger.setblocking(False)
        assert _why_not(f"127.0.0.1:{stranger.getsockname()[1]}", _site(tmp_path))
        with pytest.raises(BlockingIOError):
            stranger.accept()


def test_without_certificates_the_master_is_that_of_the_machine(tmp_path: Path) -> None:
    assert _site(tmp_path).masters == [f"unix:{tmp_path}/master/lavad.sock"]
    assert _site(tmp_path, LAVA_TLS_DIR="/tls", LSF_MASTER_LIST="a b").masters == ["a:16879", "b:16879"]


def test_a_folder_that_others_could_enter_proves_nothing(tmp_path: Path) -> None:
    target = localsocket.address(str(tmp_path), "lavad")
    folder = tmp_path / "master"
    assert _why_not(target, _site(tmp_path)) == f"{folder}: No such file or directory"
    folder.mkdir(0o700)
    assert _why_not(target, _site(tmp_path)) == ""
    for mode in (0o755, 0o710, 0o701, 0o770):
        folder.chmod(mode)
        assert f"has mode {mode:04o}, not 0700" in _why_not(target, _site(tmp_path))


def test_a_link_in_the_folders_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(0o700)
    (tmp_path / "master").symlink_to("elsewhere")
    assert _why_not(localsocket.address(str(tmp_path), "lavad"), _site(tmp_path)) == f"{tmp_path}/master: Not a directory"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder to another user")
def test_a_folder_of_another_user_proves_nothing_on_either_side(tmp_path: Path) -> None:
    target = localsocket.address(str(tmp_path), "lavad")
    (tmp_path / "master").mkdir(0o700)
    os.chown(tmp_path / "master", 65534, 65534)
    assert "belongs to user 65534" in _why_not(target, _site(tmp_path))
    with pytest.raises(localsocket.NotPrivate, match="belongs to user 65534"):
        localsocket.make(target)


def test_the_listener_makes_its_folder_for_itself_alone(tmp_path: Path) -> None:
    folder, through = localsocket.make(localsocket.address(str(tmp_path / "run"), "lavad-2"))
    try:
        assert (tmp_path / "run" / "master").stat().st_mode & 0o777 == 0o700
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(through.removeprefix("unix:"))
        assert (tmp_path / "run" / "master" / "lavad-2.sock").is_socket()
    finally:
        os.close(folder)


def test_a_node_cannot_be_the_master_with_its_own_certificate(tmp_path: Path) -> None:
    certs.make(tmp_path, "c1", ["127.0.0.1"], ["127.0.0.1", "h1"])
    site = _site(tmp_path, LAVA_TLS_DIR=str(tmp_path))
    assert _greeted(tmp_path, "master", site) == ""
    assert "UNAVAILABLE" in _greeted(tmp_path, "127.0.0.1", site)


def test_a_master_whose_certificate_was_revoked_is_none(tmp_path: Path) -> None:
    certs.make(tmp_path, "c1", ["127.0.0.1"], ["h1"])
    site = _site(tmp_path, LAVA_TLS_DIR=str(tmp_path))
    former = _folder_of(tmp_path, "master")
    certs.revoke(tmp_path, ["master"])
    certs.make(tmp_path, "c1", ["127.0.0.1"], [])
    assert "is revoked" in _greeting(FakeMaster(tls=former), site)
    good = FakeMaster(tls=_folder_of(tmp_path, "master"))
    assert _greeting(good, site) == ""
    # a list that is not the authority's changes nothing
    (tmp_path / "ca.crl").write_text("x")
    assert "is revoked" in _greeting(FakeMaster(tls=former), site)


def test_a_host_whose_own_certificate_has_ended_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master's end of TLS closes the connection without a word."""
    certs.make(tmp_path, "c1", ["127.0.0.1"], [])
    monkeypatch.setattr(certs, "MEMBER_DAYS", 0)
    certs.make(tmp_path, "c1", [], ["h1"])
    why = _greeted(tmp_path, "master", _site(tmp_path, LAVA_TLS_DIR=str(tmp_path)))
    assert why.endswith(f"; the certificate {tmp_path}/h1.crt has ended")


def test_certificates_of_earlier_versions_are_good_on_python_3_13(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They identify no keys, which its default context looks for."""
    known = ssl.create_default_context

    def strict(**given: Any) -> ssl.SSLContext:
        context = known(**given)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    monkeypatch.setattr(certs, "_signed", lambda builder, key, signing, uses: builder.sign(signing, hashes.SHA256()))
    certs.make(tmp_path, "c1", ["127.0.0.1"], ["h1", "h2"])
    certs.revoke(tmp_path, ["h2"])
    assert _greeting(FakeMaster(tls=tmp_path), _site(tmp_path, LAVA_TLS_DIR=str(tmp_path))) == ""


def test_who_shows_a_good_certificate_first_and_is_another_then_hears_nothing(tmp_path: Path) -> None:
    certs.make(tmp_path, "c1", ["127.0.0.1"], ["h1"])
    site = _site(tmp_path, LAVA_TLS_DIR=str(tmp_path))
    former = FakeMaster(tls=_folder_of(tmp_path, "master"))
    certs.revoke(tmp_path, ["master"])
    certs.make(tmp_path, "c1", ["127.0.0.1"], [])
    good = FakeMaster(tls=_folder_of(tmp_path, "master"))
    with Turncoat(good.address, former.address) as between:
        assert "UNAVAILABLE" in _greeting_at(between.address, site)
    assert between.connections >= 2
    assert former.hellos == []
    good.stop()
    former.stop()


class Turncoat:
    """Passes the first connection on to one listener, all later ones to another."""

    def __init__(self, first: str, later: str) -> None:
        self.connections = 0
        self._targets = first, later
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._links: list[socket.socket] = []

    def __enter__(self) -> Turncoat:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for link in (self._listener, *self._links):
            link.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            host, _, port = self._targets[min(self.connections, 1)].rpartition(":")
            self.connections += 1
            called = socket.create_connection((host, int(port)))
            self._links += [caller, called]
            for source, sink in ((caller, called), (called, caller)):
                threading.Thread(target=_pass_on, args=(source, sink), daemon=True).start()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


def _folder_of(tls: Path, name: str) -> Path:
    """A folder in which somebody has this certificate as a master's."""
    folder = Path(tempfile.mkdtemp(dir=tls))
    for file, source in (("ca.crt", "ca.crt"), ("master.crt", f"{name}.crt"), ("master.key", f"{name}.key")):
        (folder / file).write_bytes((tls / source).read_bytes())
    return folder


def _greeted(tls: Path, name: str, site: Site) -> str:
    """Why no master is found where somebody listens with this certificate, "" if one is."""
    return _greeting(FakeMaster(tls=_folder_of(tls, name)), site)


def _greeting(master: FakeMaster, site: Site) -> str:
    try:
        return _greeting_at(master.address, site)
    finally:
        master.stop()


def _greeting_at(address: str, site: Site) -> str:
    async def greet() -> None:
        session = await open_session(address, site, pb.Hello(host="h1"))
        await session.close()

    try:
        asyncio.run(greet())
    except NotMaster as why:
        return str(why)
    return ""

"""Certificates are renewed and revoked under running daemons and jobs; one that ends soon is told of."""

from __future__ import annotations

import http.client
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from cli.local import certs
from proto.daemon import revoked
from tests.support.live.tls import Impostor, TlsCluster
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    """host3 is a node whose key somebody has; every certificate ends within the days of the warning."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = f"LAVA_CERT_WARN_DAYS=1000\nLAVA_METRICS_ADDRESS={port}\n"
    folder = tmp_path_factory.mktemp("site")
    with TlsCluster(folder / "cluster", hosts=3, without=("host3",), conf=conf) as cluster:
        yield cluster


def _log(site: TlsCluster, name: str = "lavad") -> str:
    return (site.folder.log / f"{name}.log").read_text()


def test_an_end_that_is_near_is_in_the_log_the_metrics_and_badmin(site: TlsCluster) -> None:
    line = "the certificate of agent:host2 ends in 824 days"
    wait_until(lambda: line in _log(site), 20, "the warning")
    wait_until(lambda: f"Warning: {line}\n" in site.run("badmin showstatus").stdout, 20, "badmin to say so")
    assert "Warning: the certificate of master ends in 824 days\n" in site.run("badmin showstatus").stdout
    port = next(line.split("=")[1] for line in (site.folder.conf / "lsf.conf").read_text().splitlines() if "METRICS" in line)
    page = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
    page.request("GET", "/metrics")
    text = page.getresponse().read().decode()
    page.close()
    assert 'lava_certificate_end_seconds{name="agent:host1"}' in text
    assert 'lava_certificate_end_seconds{name="the authority"}' in text


def test_renewed_certificates_are_taken_up_while_jobs_run(site: TlsCluster) -> None:
    job = site.submit("-m host2 -o /dev/null sleep 1000")
    site.wait_for(job, "RUN")
    pids = {name: int(site.folder.pid_file(name).read_text()) for name in ("lavad", "agent-host1", "agent-host2")}
    site.certs("--renew")
    for host in ("host1", "host2"):
        wait_until(lambda host=host: "the stream is made anew" in _log(site, f"agent-{host}"), 60, "a new stream")  # type: ignore[misc]
    wait_until(lambda: "were read again" in _log(site), 20, "the master's new certificate")
    serial = x509.load_pem_x509_certificate((site.tls / "master.crt").read_bytes()).serial_number
    wait_until(lambda: _serial_of(site) == serial, 20, "the master to show its new certificate")
    wait_until(lambda: site.status()[:2] == ["ok", "ok"], 30, "both hosts")
    assert site.states(job) == ["RUN"]
    site.wait_for(site.submit("-m host2 -o /dev/null true"), "DONE")
    for name, pid in pids.items():
        os.kill(pid, 0)
        assert int(site.folder.pid_file(name).read_text()) == pid
    site.run(f"bkill {job}")
    site.wait_for(job, "EXIT")


def _serial_of(site: TlsCluster) -> int:
    """The serial number of the certificate that the master shows."""
    import ssl

    host, _, port = site.address.rpartition(":")
    context = ssl.create_default_context(cafile=site.tls / "ca.crt")
    context.load_cert_chain(site.tls / "host3.crt", site.tls / "host3.key")
    with socket.create_connection((host, int(port)), 10) as link, context.wrap_socket(link, server_hostname=host) as tls:
        shown = tls.getpeercert(binary_form=True)
    assert shown is not None
    return x509.load_der_x509_certificate(shown).serial_number


def test_a_revoked_certificate_ends_its_stream_and_opens_none(site: TlsCluster, tmp_path: Path) -> None:
    for name in ("ca.crt", "host3.crt", "host3.key"):
        (tmp_path / name).write_bytes((site.tls / name).read_bytes())
    with Impostor(site.address, tmp_path, "host3") as thief, Impostor(site.address, tmp_path, "host3") as late:
        assert thief.greet("host3") == ""
        assert thief.command("nobody", 65534, ask="query", command="bjobs") == ""
        site.certs("--revoke", "host3")
        assert thief.ended() == "OK"
        assert "is revoked" in thief.command("nobody", 65534, ask="query", command="bjobs")
        assert "is revoked" in late.greet("host3")
    assert "Warning: host host3 refused: certificate" in wait_until(
        lambda: found if "host3 refused" in (found := site.run("badmin showstatus").stdout) else "", 20, "badmin to say so"
    )
    # hosts take the list up too, without losing anything
    wait_until(lambda: "is revoked" not in _log(site, "agent-host1") and site.status()[:2] == ["ok", "ok"], 30, "both hosts")
    # a new certificate of the same host holds
    site.certs("--hosts", "host3")
    with Impostor(site.address, site.tls, "host3") as node:
        assert node.greet("host3") == ""


def test_a_list_that_is_not_the_authoritys_changes_nothing(site: TlsCluster) -> None:
    good = (site.tls / revoked.FILE).read_bytes()
    site.lava("certs", "--out", str(site.folder.path / "other"), "--hosts", "host1")
    forged = certs.revoke(site.folder.path / "other", ["host1"])
    (site.tls / revoked.FILE).write_bytes(forged.read_bytes())
    wait_until(
        lambda: "ca.crl is not signed by the authority of ca.crt; the former certificates stay in force" in _log(site),
        20,
        "the error",
    )
    assert site.status()[:2] == ["ok", "ok"]
    (site.tls / revoked.FILE).write_bytes(good)

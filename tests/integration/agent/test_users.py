"""A root agent runs jobs as their owners; mail; a master behind TLS."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, run, running
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that every user may pass through."""
    tmp_path.chmod(0o755)
    return tmp_path


@pytest.fixture
def host(folder: Path, master: FakeMaster) -> Iterator[AgentHost]:
    mailer = folder / "mailer"
    mailer.write_text(f"#!/bin/sh\ncd {folder}/mailbox\n(echo ARGV: $@; cat) > new && mv new mail\n")
    mailer.chmod(0o755)
    (folder / "mailbox").mkdir()
    (folder / "mailbox").chmod(0o777)
    one = AgentHost(folder, master.address, conf=f"LSB_MAILPROG={mailer}\n")
    with running(one, lambda: master.hellos):
        yield one


@needs_root
def test_everything_of_a_job_is_its_owners(master: FakeMaster, host: AgentHost) -> None:
    home = host.folder / "home"
    home.mkdir(mode=0o700)
    shutil.chown(home, "nobody", "nogroup")
    order = run(master, host, "id -un; umask", user="nobody", cwd=str(home), output="out", umask=0o077)
    assert master.wait_for(order.uid, "ended").ended.status == 0
    assert (home / "out").read_text().startswith("nobody\n0077\n")
    assert ((home / "out").owner(), (home / "out").stat().st_mode & 0o777) == ("nobody", 0o600)
    order = run(master, host, "x", user="nobody", cwd=str(home), script="id -un\n")
    end = master.wait_for(order.uid, "ended").ended
    assert Path(end.output).read_text() == "nobody\n"
    assert (Path(end.output).owner(), Path(end.output).parent.owner()) == ("nobody", "nobody")
    assert Path(end.output).parent.stat().st_mode & 0o777 == 0o700


@needs_root
def test_what_only_root_may_touch_is_refused_to_a_user(master: FakeMaster, host: AgentHost) -> None:
    secret = host.folder / "secret"
    secret.mkdir(mode=0o700)
    (secret / "file").write_text("secret")
    order = run(master, host, "true", user="nobody", cwd="/", output=f"{secret}/out")
    refused = master.wait_for(order.uid, "refused").refused
    assert (refused.code, "Permission denied" in refused.why) == ("output", True)
    order = run(master, host, "cat", user="nobody", cwd="/", input=f"{secret}/file")
    assert master.wait_for(order.uid, "refused").refused.code == "input"
    order = run(master, host, "true", user="nobody", cwd=str(secret), env={"LSB_EXIT_IF_CWD_NOTEXIST": "Y"})
    assert master.wait_for(order.uid, "refused").refused.code == "cwd"
    order = run(master, host, "sleep 100", user="nobody", cwd="/")
    master.wait_for(order.uid, "started")
    master.send(peek=pb.Peek(id=4, uid=order.uid, path=f"{secret}/file"))
    assert "Permission denied" in wait_until(lambda: master.peeks, 30, "peek")[0].error


def test_a_report_goes_by_mail_where_there_is_a_mailer(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "echo by mail", report_mail="bob@x", admins=["boss"])
    end = master.wait_for(order.uid, "ended").ended
    box = host.folder / "mailbox" / "mail"
    wait_until(box.exists, 30, "mail")
    mail = box.read_text()
    assert mail.startswith("ARGV: -oi -FLSF -fboss bob@x\nTo: bob@x\nFrom: LSF <boss>\nSender: LSF System <boss@h1>\n")
    assert mail.endswith("The output (if any) follows:\n\nby mail\n")
    assert Path(end.output).read_text() == "by mail\n"
    box.unlink()
    order = run(master, host, "echo file", report_mail="bob@x", output="out", notify_end=True)
    master.wait_for(order.uid, "ended")
    wait_until(box.exists, 30, "mail")
    assert (host.folder / "work" / "out").read_text() == "file\n"
    box.unlink()
    order = run(master, host, "echo kept", report_mail="bob@x", output="out2", notify_end=True, direct_output=False)
    master.wait_for(order.uid, "ended")
    wait_until(box.exists, 30, "mail")
    assert (host.folder / "work" / "out2").read_text() == "kept\n"


@needs_root
def test_no_master_makes_an_agent_run_jobs_of_root_where_its_own_site_does_not(folder: Path, master: FakeMaster) -> None:
    """Nor because it has looked root up before, to show a file of root's."""
    with running(AgentHost(folder, master.address, conf="LSF_ROOT_USER=N\n"), lambda: master.hellos) as host:
        master.send(peek=pb.Peek(id=9, uid="over", path="/etc/hostname", user="root"))
        wait_until(lambda: master.peeks, 30, "peek")
        order = run(master, host, "touch started", user="root", cwd=str(folder))
        refused = master.wait_for(order.uid, "refused").refused
        assert (refused.code, refused.why) == ("not_allowed", "host h1 runs no jobs of root (LSF_ROOT_USER)")
        assert not (folder / "started").exists()
        other = run(master, host, "true", user="nobody", cwd="/")
        assert master.wait_for(other.uid, "ended").ended.status == 0


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def sign(folder: Path, name: str) -> None:
    ca = ["-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key", "-CAcreateserial", "-extfile", f"{folder}/ext"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{folder}/{name}.key"]
    openssl("req", *key, "-subj", f"/CN={name}", "-out", f"{folder}/{name}.csr")
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", f"{folder}/{name}.csr", *ca, "-out", f"{folder}/{name}.crt")


def test_daemons_know_each_other_by_certificates(folder: Path) -> None:
    tls = folder / "tls"
    tls.mkdir()
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{tls}/ca.key"]
    openssl("req", "-x509", *key, "-subj", "/CN=ca", "-out", f"{tls}/ca.crt")
    for name in ("master", "h1"):
        sign(tls, name)
    master = FakeMaster(tls=tls)
    host = AgentHost(folder, master.address, conf=f"LAVA_TLS_DIR={tls}\n")
    try:
        host.start()
        wait_until(lambda: master.hellos, 30, "hello")
        order = run(master, host, "true")
        assert master.wait_for(order.uid, "ended").ended.status == 0
    finally:
        host.stop()
        master.stop()

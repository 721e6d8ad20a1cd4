"""What somebody can do who has the key of a compute node: speak for that node, and for nothing else."""

from __future__ import annotations

import os
import pwd
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lavad.core.events import JobDispatched
from lavad.store.codec import decode_event
from proto import agent_pb2 as pb
from tests.support.live.tls import Impostor, TlsCluster
from tests.support.wait import wait_until

ME = pwd.getpwuid(os.geteuid()).pw_name
DENIED = "User permission denied"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as other users")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsCluster]:
    """host1 is the master's, host3 a node whose key somebody has; ``stranger`` has a certificate and is no host of it."""
    folder = tmp_path_factory.mktemp("site")
    folder.chmod(0o755)
    with TlsCluster(folder / "cluster", hosts=3, without=("host3",)) as cluster:
        cluster.certs("--master", "127.0.0.1", "--hosts", "stranger")
        (file,) = cluster.folder.conf.glob("lsf.cluster.*")
        file.write_text(re.sub(r"(?im)^(administrators *=.*)$", r"\1 daemon", file.read_text()))
        cluster.run("badmin reconfig")
        yield cluster


@pytest.fixture
def victim(site: TlsCluster) -> Iterator[int]:
    """A job that runs on host2."""
    job = site.submit("-m host2 -o /dev/null sleep 1000")
    site.wait_for(job, "RUN")
    yield job
    site.run(f"bkill {job}")
    site.wait_for(job, "EXIT")


def _impostor(site: TlsCluster, name: str) -> Impostor:
    return Impostor(site.address, site.tls, name)


def test_a_certificate_of_no_host_of_the_cluster_is_worth_nothing(site: TlsCluster, victim: int) -> None:
    with _impostor(site, "stranger") as stranger:
        assert "not in lsf.cluster" in stranger.greet("stranger")
        assert "the peer is host stranger" in _impostor(site, "stranger").greet("host2")
        for host in ("root", "lsfadmin"):
            assert stranger.command(host, 0, ask="kill", jobs={"ids": [str(victim)]}).startswith("PERMISSION_DENIED")
        assert stranger.command(ME, 0, ask="hosts", hosts=["host1"], close=True).startswith("PERMISSION_DENIED")
    assert site.states(victim) == ["RUN"]
    assert site.status()[:2] == ["ok", "ok"]


def test_a_nodes_key_is_no_administrators(site: TlsCluster, victim: int) -> None:
    with _impostor(site, "host3") as node:
        # an agent has commands ask again for that, as a master that takes over does not know its stream yet
        assert node.command("root", 0, ask="kill", jobs={"ids": [str(victim)]}) == (
            "UNAVAILABLE: host host3 has no stream on this connection"
        )
        assert node.greet("host3") == ""
        assert "root is not heard" in node.command("root", 0, ask="kill", jobs={"ids": [str(victim)]})
        assert "root is not heard" in node.command("anybody", 0, ask="modify", job=str(victim), options={"Z": "id"})
        assert "root is not heard" in node.command("root", 1000, ask="submit", command="id")
        # ``daemon`` is an administrator of this cluster, but not from there
        site.run("badmin hopen host1", user=1, cwd=Path("/"))
        assert DENIED in node.command("daemon", 1, ask="kill", jobs={"ids": [str(victim)]})
        assert DENIED in node.command("daemon", 1, ask="hosts", hosts=["host1"], close=True)
        assert DENIED in node.command("nobody", 65534, ask="hosts", hosts=["host1"], close=True)
        assert DENIED in node.command("nobody", 65534, ask="reconfig")
    assert site.states(victim) == ["RUN"]
    assert site.status()[:2] == ["ok", "ok"]


def test_a_node_cannot_speak_of_parts_on_other_hosts(site: TlsCluster, victim: int) -> None:
    with _impostor(site, "host3") as node:
        assert node.greet("host3") == ""
        usage = pb.Usage(key=victim, attempt=1, at=1.0, max_mem=7 << 30, pids=[1])
        node.say(heartbeat=pb.Heartbeat(sent=1.0, load={"mem": 1.0}, usage=[usage]))
        for number in range(1, 50):
            node.say(peek=pb.PeekData(id=number, data=b"forged", size=6))
        forged: list[dict[str, Any]] = [
            {"ended": pb.Ended(status=9, at=1.0, gone=True)},
            {"refused": pb.PartRefused(code="bad", why="forged")},
            {"gone": pb.Gone()},
            {"stopped": pb.Stopped(stopped=True)},
        ]
        uid = _uid(site, victim)
        reports = [pb.Report(serial=number, key=victim, attempt=1, uid=uid, **what) for number, what in enumerate(forged, 1)]
        node.say(reports=pb.Reports(reports=reports))
        node.wait_for_ack(len(forged))
        assert "forged" not in site.run(f"bjobs -l {victim}; bhist -l {victim}").stdout
        assert site.run(f"bjobs -noheader -o max_mem {victim}").stdout.strip() != "7 Tbytes"
    assert site.states(victim) == ["RUN"]


def _uid(site: TlsCluster, job: int) -> str:
    """The uid of the live attempt, which a thief may know."""
    with sqlite3.connect(f"file:{site.folder.path}/lavad.sqlite?mode=ro", uri=True) as store:
        asked = "select data from events where kind = 'JobDispatched' and job = ? order by seq desc limit 1"
        (data,) = store.execute(asked, (job,)).fetchone()
    event = decode_event(0, data)
    assert isinstance(event, JobDispatched)
    return event.uid


def test_a_second_machine_of_a_hosts_name_is_refused_and_both_logs_say_so(site: TlsCluster, victim: int) -> None:
    with _impostor(site, "host2") as twin:
        assert "another machine, with another boot id, is connected as host host2" in twin.greet("host2", boot_id="cloned")
        assert "no stream on this connection" in twin.command("nobody", 65534, ask="query", command="bjobs")
    assert "host host2 refused: another machine" in (site.folder.log / "lavad.log").read_text()
    assert site.states(victim) == ["RUN"]


def test_a_host_that_has_left_the_cluster_is_heard_no_more(site: TlsCluster) -> None:
    files = [*site.folder.conf.glob("lsf.cluster.*"), site.folder.conf / "lsb.hosts"]
    kept = [file.read_text() for file in files]
    with _impostor(site, "host3") as node:
        assert node.greet("host3") == ""
        assert node.command("nobody", 65534, ask="query", command="bjobs") == ""
        for file, text in zip(files, kept, strict=True):
            file.write_text("".join(line for line in text.splitlines(keepends=True) if not line.startswith("host3")))
        try:
            site.run("badmin reconfig")
            wait_until(
                lambda: "not in lsf.cluster" in node.command("nobody", 65534, ask="query", command="bjobs"), 20, "its leave"
            )
            node.say(heartbeat=pb.Heartbeat(sent=2.0))
            assert node.ended() == "OK"
            with _impostor(site, "host3") as again:
                assert "not in lsf.cluster" in again.greet("host3")
        finally:
            for file, text in zip(files, kept, strict=True):
                file.write_text(text)
            site.run("badmin reconfig")


def test_users_who_have_no_job_on_it_are_not_vouched_for_by_a_host_that_takes_no_commands(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    made = TlsCluster(tmp_path / "c", hosts=2, without=("host2",), conf="LAVA_SUBMIT_HOSTS=host1\n")
    with made as cluster, _impostor(cluster, "host2") as node:
        assert node.greet("host2") == ""
        assert node.command("nobody", 65534, ask="query", command="bjobs") == "host2: Host is not a submission host"
        assert node.command("nobody", 65534, ask="submit", command="id") == "host2: Host is not a submission host"

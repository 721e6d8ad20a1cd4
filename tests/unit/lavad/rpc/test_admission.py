"""Which agents are let in: the one agent of a host that belongs to the cluster, and commands on its own connection alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from config.model.cluster import HostConfig
from lavad.core.decide.control.hosts import greeted
from lavad.core.job.spec import Checkpoint
from lavad.core.site.host import Facts
from lavad.hosts.leases import Leases
from lavad.hosts.sessions import Session, Sessions
from lavad.rpc.admission import Admission, address_of
from lavad.rpc.server import PeerAuth
from lavad.wire.records import Hello, PartStatus
from tests.support.worlds.bench import Bench
from tests.support.worlds.peer import HERE, THERE, Peer


class Door:
    """A master on host ``m`` of a cluster of h1 and h2."""

    def __init__(self, *listed: str) -> None:
        self.bench = Bench()
        self.bench.configure(hosts=tuple(HostConfig(name) for name in listed or ("h1", "h2")))
        self.sessions = Sessions()
        self.leases = Leases(self.bench.now)
        self.admission = Admission(
            PeerAuth(False), self.bench.cluster, self.sessions, self._silence, self._lasting, "m", lambda: self.bench.now
        )
        self.heard: dict[str, float] = {}

    def _silence(self, host: str) -> float:
        return self.bench.now - self.heard[host]

    def _lasting(self, host: str) -> list[int]:
        return self.leases.lasting(self.bench.cluster, host, self.bench.now)

    def why(
        self,
        host: str,
        certificate: str = "",
        peer: str = HERE,
        boot: str = "b1",
        epoch: int = 0,
        incarnation: str = "",
        agent: str = "",
        parts: tuple[PartStatus, ...] = (),
    ) -> str:
        hello = Hello(host, incarnation, epoch, 0, Facts(boot_id=boot, agent=agent), parts)
        return self.admission.why_not_stream(hello, Peer(certificate or f"agent:{host}", peer=peer))

    def connect(self, host: str, peer: str = HERE, boot: str = "b1") -> None:
        self.sessions.open(Session(host, 0, peer, boot))
        self.heard[host] = self.bench.now

    def vouched(self, certificate: str, peer: str = HERE) -> tuple[str, str]:
        return self.admission.vouched_host(Peer(certificate, peer=peer))


def test_the_agent_of_a_host_of_the_cluster_is_let_in() -> None:
    assert Door().why("h1") == ""


@pytest.mark.parametrize("certificate", ["agent:h2", "master", "h1", "agent:"])
def test_an_agent_is_that_of_its_certificate(certificate: str) -> None:
    assert Door().why("h1", certificate) != ""


def test_a_host_that_is_not_listed_is_refused_and_one_with_jobs_may_tell_their_ends() -> None:
    door = Door()
    assert door.why("h3") == "host h3 is not in lsf.cluster.lava"
    key = door.bench.placed()
    (host,) = door.bench.running()[key]
    door.bench.configure(hosts=(HostConfig("other"),))
    assert door.why(host) == ""
    assert not door.admission.has_left(host)
    door.connect(host)
    assert door.vouched(f"agent:{host}") == ("", f"host {host} is not in lsf.cluster.lava")
    door.bench.ended(key, host)
    assert door.admission.has_left(host)
    assert door.why(host) == f"host {host} is not in lsf.cluster.lava"


def test_hosts_join_from_the_addresses_that_are_allowed() -> None:
    door = Door()
    params = replace(door.bench.cluster.conf.params, open_hosts=True, host_addresses=("10.0.0.1",))
    door.bench.configure(params=params)
    assert door.why("h3") == ""
    assert door.why("h3", peer=THERE) == "host h3 joins from 10.0.0.9, which LSF_HOST_ADDR_RANGE does not allow"
    assert door.why("h1", peer=THERE) == "", "it is named in lsf.cluster"


def test_a_host_that_has_obeyed_a_newer_master_is_not_this_ones() -> None:
    door = Door()
    assert door.why("h1", epoch=2, incarnation="test") == "the host has obeyed a newer master (epoch 2)"
    assert door.why("h1", epoch=2, incarnation="other") == ""


def test_a_second_machine_of_a_hosts_name_is_refused_while_the_first_is_heard() -> None:
    door = Door()
    door.connect("h1", HERE, "b1")
    assert door.why("h1", peer=THERE, boot="b2") == (
        "another machine, with another boot id, is connected as host h1 from 10.0.0.1"
    )
    assert door.why("h1", peer=THERE, boot="b1") == ""  # the same machine connects again
    door.bench.now += 61
    assert door.why("h1", peer=THERE, boot="b2") == ""


def test_another_agent_of_a_host_is_refused_while_the_first_is_heard_or_has_jobs() -> None:
    door = Door()
    key = door.bench.placed()
    (host,) = door.bench.running()[key]
    door.bench.take(greeted(door.bench.cluster, host, Facts(agent="one"), {door.bench.uid(key): "running"}, door.bench.now))
    door.connect(host)
    assert door.why(host, agent="two") == f"another agent, with another folder, is connected as host {host} from 10.0.0.1"
    assert door.why(host, agent="one") == door.why(host, agent="") == ""
    door.sessions.closed(door.sessions.rows[host])
    assert door.why(host, agent="two") == (
        f"another agent, with another folder, has jobs on host {host}, and may be away for a moment only"
    )
    assert door.why(host, agent="one") == ""
    door.bench.now += 61
    assert door.why(host, agent="two") == ""
    door.heard[host] = door.bench.now
    door.bench.ended(key, host)
    assert door.why(host, agent="two") == ""


@pytest.mark.parametrize("options", [{"rerunnable": True}, {"checkpoint": Checkpoint("/ck")}])
def test_another_agent_on_the_same_machine_waits_until_the_leases_of_the_first_have_passed(options: dict[str, Any]) -> None:
    """Its folder has nothing of the jobs that run on: they would start elsewhere beside themselves."""
    door = Door()
    key = door.bench.placed(**options)
    (host,) = door.bench.running()[key]
    uid, known = door.bench.uid(key), {door.bench.uid(key): "running"}
    door.bench.take(greeted(door.bench.cluster, host, Facts(agent="one", boot_id="b1"), known, door.bench.now))
    door.heard[host] = door.bench.now
    for _ in range(2):
        door.bench.now += 319  # LAVA_LEASE 600 s, LAVA_LEASE_MARGIN 40 s
        assert door.why(host, agent="two") == (
            f"jobs of another agent, with another folder, may run on host {host} until their leases have passed: {key}"
        )
        assert door.why(host, agent="one") == ""
        assert door.why(host, agent="two", boot="b2") == "", "it was booted: nothing runs there"
        assert door.why(host, agent="two", parts=(PartStatus(key, 1, uid, "running"),)) == "", "its starter still has them"
    door.bench.now += 3
    assert door.why(host, agent="two") == ""


def test_a_machine_of_which_no_boot_is_known_was_not_booted() -> None:
    door = Door()
    key = door.bench.placed(rerunnable=True)
    (host,) = door.bench.running()[key]
    door.bench.take(greeted(door.bench.cluster, host, Facts(agent="one"), {door.bench.uid(key): "running"}, door.bench.now))
    door.heard[host] = door.bench.now
    door.bench.now += 319
    assert "until their leases have passed" in door.why(host, agent="two", boot="b1")


def test_a_refusal_that_repeats_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    door = Door()
    for _ in range(3):
        door.why("h3")
    assert door.admission.refused_lately() == ["host h3 refused: host h3 is not in lsf.cluster.lava"]
    door.bench.now += 61
    assert door.admission.refused_lately() == []
    assert caplog.messages == ["host h3 refused: host h3 is not in lsf.cluster.lava"]


def test_a_refusal_is_not_told_any_more_once_the_host_is_let_in() -> None:
    door = Door()
    door.why("h1", "agent:h2")
    assert len(door.admission.refused_lately()) == 1
    assert door.why("h1") == ""
    assert door.admission.refused_lately() == []


def test_commands_are_taken_on_the_connection_of_the_hosts_stream_alone() -> None:
    door = Door()
    assert door.vouched("agent:h1") == ("h1", "host h1 has no stream on this connection")
    door.connect("h1", HERE)
    assert door.vouched("agent:h1", HERE) == ("h1", "")
    assert door.vouched("agent:h1", THERE) == ("h1", "host h1 has no stream on this connection")
    assert door.vouched("agent:h2", HERE) == ("h2", "host h2 has no stream on this connection")
    assert door.vouched("master", HERE) == ("", "only an agent may vouch for users: no certificate of an agent")
    door.sessions.hang_up("h1")
    assert door.vouched("agent:h1", HERE) == ("h1", "host h1 has no stream on this connection")


def test_administrators_have_their_rights_on_the_masters_host_and_on_one_machine() -> None:
    door = Door()
    assert door.admission.may_administer("m")
    assert not door.admission.may_administer("h1")
    local = Admission(PeerAuth(True), door.bench.cluster, door.sessions, lambda host: 0.0, lambda host: [], "m", lambda: 0.0)
    assert local.may_administer("h1")


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:10.0.0.1:5", "10.0.0.1"),
        ("ipv6:[fe80::1]:5", "fe80::1"),
        ("ipv6:%5Bfe80::1%5D:5", "fe80::1"),
        ("unix:", "127.0.0.1"),
    ],
)
def test_the_address_of_a_peer(peer: str, address: str) -> None:
    assert address_of(peer) == address

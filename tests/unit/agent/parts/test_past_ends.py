"""Ends that a restored store has to be told again, and whom an agent obeys after a restore."""

from __future__ import annotations

from pathlib import Path

from agent.launch.accounts import Accounts
from agent.launch.site import Site
from agent.parts import past_ends
from agent.parts.host_monitor import HostMonitor
from agent.parts.past_ends import SKEW, PastEnds
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter_client.outgoing import Outgoing
from proto import agent_pb2 as pb
from proto.version import PROTOCOL, why_not_protocol


def end(uid: str, pad: int = 0) -> pb.Report:
    return pb.Report(key=1, attempt=1, uid=uid, ended=pb.Ended(status=3, at=5.0, gone=True, first_reason="x" * pad))


def test_ends_are_kept_with_the_time_of_their_acknowledgement(tmp_path: Path) -> None:
    ends = PastEnds(str(tmp_path))
    assert ends.since(0.0) == {}
    ends.keep(end("a"), 1_000.0)
    ends.keep(end("b"), 9_000.0)
    assert PastEnds(str(tmp_path)).since(0.0) == {}  # not written yet
    ends.flush()
    again = PastEnds(str(tmp_path))
    assert again.since(0.0) == {"a": end("a"), "b": end("b")}
    assert list(again.since(1_000.0 + SKEW + 1)) == ["b"]
    assert (tmp_path / "ends.journal").stat().st_mode & 0o777 == 0o600


def test_the_newest_are_kept_within_a_size_and_a_torn_one_is_left_out(tmp_path: Path) -> None:
    ends = PastEnds(str(tmp_path))
    for number in range(400):
        ends.keep(end(f"u{number}", 40_000), 1.0)
        ends.flush()
    kept = ends.since(0.0)
    assert "u399" in kept
    assert "u0" not in kept
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2 * past_ends.LARGEST + 100_000
    file = tmp_path / "ends.journal"
    file.write_bytes(file.read_bytes()[:-9])
    assert "u399" not in PastEnds(str(tmp_path)).since(0.0)


def runner(folder: Path) -> Runner:
    site = Site("h", str(folder), str(folder), str(folder), {}, own_user="me")
    return Runner(site, Spool(str(folder / "agent")), HostMonitor("127.0.0.1", 1), Accounts(), Outgoing())


def welcome(store: str, epoch: int = 1, restored: float = 0.0) -> pb.Welcome:
    return pb.Welcome(epoch=epoch, incarnation=store, restored=restored, protocol=PROTOCOL)


def uids(found: Runner) -> list[str]:
    return [part.uid for part in found.hello(pb.Facts()).parts]


def test_a_restored_store_is_told_the_ends_that_it_cannot_have(tmp_path: Path) -> None:
    first = runner(tmp_path)
    assert first.welcomed(welcome("old", 9), 0.0) == ""
    spool = Spool(str(tmp_path / "agent"))
    spool.ends.keep(end("before"), 1_000.0)
    spool.ends.keep(end("since"), 9_000.0)
    spool.flush()

    assert "another greeting follows" in first.welcomed(welcome("new", 2, restored=8_000.0), 0.0)
    assert first.hello(pb.Facts()).incarnation == "new"
    assert uids(first) == ["since"]
    assert first.outbox.empty

    restarted = runner(tmp_path)
    assert uids(restarted) == ["since"]
    assert restarted.welcomed(welcome("new", 2), 0.0) == ""
    (report,) = restarted.outbox.take()
    assert (report.uid, report.ended.status) == ("since", 3)
    restarted.from_master(pb.ToAgent(acks=pb.Acks(serial=report.serial, ended=["since"])))
    assert uids(restarted) == []
    assert uids(runner(tmp_path)) == []


def test_a_master_that_is_too_old_is_not_obeyed(tmp_path: Path) -> None:
    assert runner(tmp_path).welcomed(pb.Welcome(epoch=1, incarnation="i"), 0.0) == ""  # one that names no protocol speaks 1
    why = why_not_protocol("lavad", 3, "the agent", oldest=4)
    assert why.startswith("lavad speaks protocol 3, the agent of lava ")
    assert why.endswith("speaks 4 to 2: upgrade lavad")


def test_a_store_that_was_left_is_never_obeyed_again(tmp_path: Path) -> None:
    agent = runner(tmp_path)
    agent.welcomed(welcome("old", 9), 0.0)
    agent.welcomed(welcome("new", 2, restored=8_000.0), 0.0)
    assert "given up for another (new)" in agent.welcomed(welcome("old", 10), 0.0)
    assert "given up" in runner(tmp_path).welcomed(welcome("old", 10), 0.0)
    assert agent.welcomed(welcome("new", 2), 0.0) == ""
    assert "needs lava db restore" in agent.welcomed(welcome("new", 1), 0.0)

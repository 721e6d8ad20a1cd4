"""The agent's own notes on disk, and reports that wait for their acknowledgement."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.part import Part, Rules, Stage
from agent.launch.site import Site, User
from agent.master.link import Outbox
from agent.parts.entry import adopted
from agent.parts.spool import NotReadable, Obeyed, Spool
from proto import agent_pb2 as pb
from tests.support.examples import examples

ALICE = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/sh")


def test_parts_are_read_back_with_their_text_and_notes(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path))
    assert spool.load() == {}
    text = pb.JobText(id=1, command="x", array_end=3)
    part = Part("a", 7, 1, Rules(run=60), Stage.RUNNING, since=5.0, requests=frozenset({1, 2}))
    for uid in ("a", "b", "c"):
        spool.began(uid, b"order " + uid.encode(), text, ALICE, 12.0, f"/f/{uid}.end")
    spool.keep(part)
    spool.forget("b")
    spool.flush()
    for _ in range(2):
        found = Spool(str(tmp_path)).load()
        assert list(found) == ["a", "c"]
        assert (found["a"].order, found["a"].part, found["a"].user) == (b"order a", part, ALICE)
        assert found["a"].ends == "/f/a.end"
        assert pb.JobText.FromString(found["c"].text) == text
    # What elements share is written once.
    assert (tmp_path / "parts.journal").read_bytes().count(text.SerializeToString()) == 1


def test_notes_that_cannot_be_read_are_not_taken_for_none(tmp_path: Path) -> None:
    for name in ("parts.journal", "obeyed.json"):
        (tmp_path / name).symlink_to(name)  # ELOOP, for root too
    spool = Spool(str(tmp_path))
    with pytest.raises(NotReadable, match=r"parts\.journal"):
        spool.load()
    with pytest.raises(NotReadable, match=r"obeyed\.json"):
        spool.obeyed()
    assert sorted(os.listdir(tmp_path)) == ["obeyed.json", "parts.journal"]


def test_a_journal_that_cannot_be_written_anew_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of descriptors, say: what is noted afterwards is in the journal that is read."""
    monkeypatch.setattr("agent.parts.spool.COMPACT_AT", 0)
    spool = Spool(str(tmp_path))
    spool.load()
    text = pb.JobText(id=1, command="x")
    spool.began("before", b"o", text, ALICE, 1.0, "")
    spool.flush()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        spool.compact()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    spool.began("after", b"o", text, ALICE, 1.0, "")
    spool.flush()
    assert list(Spool(str(tmp_path)).load()) == ["before", "after"]


@contextlib.contextmanager
def disk_of(size: int) -> Iterator[None]:
    """No file can grow beyond these bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, former)


@settings(max_examples=examples(50))
@given(st.data())
def test_a_torn_journal_gives_what_was_whole(tmp_path_factory: object, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("spool")  # type: ignore[attr-defined]
    spool = Spool(str(folder))
    spool.load()
    text = pb.JobText(id=1, command="x" * 50)
    for number in range(5):
        spool.began(str(number), b"o", text, ALICE, 1.0, "")
    spool.flush()
    path = folder / "parts.journal"
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    found = list(Spool(str(folder)).load())
    assert found == [str(number) for number in range(len(found))]


def test_a_damaged_entry_takes_no_other_with_it(tmp_path: Path) -> None:
    """Whatever byte of it is another: the agent starts, and knows the parts of which nothing is damaged."""
    spool = Spool(str(tmp_path))
    spool.load()
    order = pb.Order(key=7, attempt=1, start=pb.Start(hosts=[pb.HostSlots(host="h1", slots=1)]))
    sizes = []
    for number, uid in enumerate("abc"):
        spool.began(uid, order.SerializeToString(), pb.JobText(id=number, command="x", user="alice"), ALICE, 1.0, "")
        spool.keep(Part(uid, 7, 1))
        spool.flush()
        sizes.append(spool.size)
    path, site = tmp_path / "parts.journal", Site("h1", str(tmp_path), str(tmp_path), str(tmp_path), {})
    whole, again = path.read_bytes(), Spool(str(tmp_path))  # one, which holds one file open
    for at in range(len(whole)):
        for value in {0xFF, whole[at] ^ 1}:
            path.write_bytes(whole[:at] + bytes((value,)) + whole[at + 1 :])
            found = {entry.uid for entry in adopted(again.load(), site, 1.0)}
            hit = sum(at >= size for size in sizes)
            assert found.issuperset("abc"[:hit])
    torn = whole.index(b"alice", sizes[0])
    path.write_bytes(whole[:torn] + b"\xff" + whole[torn + 1 :])
    assert [entry.uid for entry in adopted(Spool(str(tmp_path)).load(), site, 1.0)] == ["a", "c"]


def test_what_is_written_after_a_full_disk_is_read_again(tmp_path: Path) -> None:
    """An entry that the disk took half of is taken back: what stands behind it would be lost with it."""
    spool = Spool(str(tmp_path))
    spool.load()
    text, array = pb.JobText(id=1, command="x"), pb.JobText(id=2, command="y", array_end=9)
    spool.began("before", b"o", text, ALICE, 1.0, "")
    spool.flush()
    with disk_of(spool.size + 10):
        spool.began("lost", b"o" * 100, array, ALICE, 1.0, "")
        spool.flush()
    spool.began("after", b"o", array, ALICE, 1.0, "")
    spool.flush()
    found = Spool(str(tmp_path)).load()
    assert [(uid, pb.JobText.FromString(one.text)) for uid, one in found.items()] == [("before", text), ("after", array)]


def test_an_agent_starts_on_a_full_disk_with_the_journal_that_is_there(tmp_path: Path) -> None:
    """What it adds once there is room stands behind what the journal had, and takes the place of nothing in it."""
    spool = Spool(str(tmp_path))
    spool.load()
    text, other = pb.JobText(id=1, command="x" * 500), pb.JobText(id=2, command="y")
    spool.began("gone", b"o", other, ALICE, 1.0, "")
    spool.began("a", b"o", text, ALICE, 1.0, "")
    spool.forget("gone")
    spool.flush()
    path = tmp_path / "parts.journal"
    path.write_bytes(path.read_bytes() + b"\0\0\0\x09torn")
    again = Spool(str(tmp_path))
    with disk_of(100):
        assert list(again.load()) == ["a"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["parts.journal"]
    again.began("b", b"o", other, ALICE, 1.0, "")
    again.flush()
    found = Spool(str(tmp_path)).load()
    assert {uid: pb.JobText.FromString(one.text) for uid, one in found.items()} == {"a": text, "b": other}


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    """Environments of jobs are in it. What an older agent left open is closed."""
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o755)
    spool = Spool(str(folder))
    spool.load()
    spool.obey(Obeyed("store", 7))
    assert [path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())] == [0, 0, 0]


def test_the_master_that_is_obeyed_is_remembered(tmp_path: Path) -> None:
    assert Spool(str(tmp_path)).obeyed() == Obeyed()
    Spool(str(tmp_path)).obey(Obeyed("store", 7))
    assert Spool(str(tmp_path)).obeyed() == Obeyed("store", 7)
    for damaged in (b"{", b'{"incarnation":"\xff"}'):
        (tmp_path / "obeyed.json").write_bytes(damaged)
        assert Spool(str(tmp_path)).obeyed() == Obeyed()


def test_reports_are_kept_until_acknowledged_and_numbered_anew() -> None:
    box = Outbox()
    for uid in "abc":
        box.put(pb.Report(uid=uid))
    assert [(r.serial, r.uid) for r in box.take()] == [(1, "a"), (2, "b"), (3, "c")]
    assert box.empty
    box.acked(1)
    box.put(pb.Report(uid="d"))
    box.new_stream()
    assert [(r.serial, r.uid) for r in box.take()] == [(1, "b"), (2, "c"), (3, "d")]
    box.acked(3)
    box.new_stream()
    assert box.take() == []


def test_an_agent_is_the_same_for_as_long_as_its_folder_is(tmp_path: Path) -> None:
    drawn = Spool(str(tmp_path)).drawn()
    assert len(drawn) == 32
    assert Spool(str(tmp_path)).drawn() == drawn
    assert Spool(str(tmp_path / "other")).drawn() not in ("", drawn)
    (tmp_path / "drawn").write_text("")
    assert Spool(str(tmp_path)).drawn() not in ("", drawn)

"""The starter's journal: what it knows after a restart."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from agent.starter.process import account, ends
from agent.starter.protocol.codec import text
from agent.starter.protocol.reports import Ended, Lost, PartState, write_report
from agent.starter.supervisor.journal import FILLED, Journal, RecordedShepherd
from agent.starter.supervisor.parts import Part


class Disk:
    """A journal in a folder, loaded again each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def load(self) -> tuple[int, dict[str, PartState]]:
        former = Journal(self.folder).load()
        return former.seq, {uid: PartState.GONE if p.end else p.state for uid, p in former.parts.items()}


def test_the_journal_knows_what_was_taken_ended_and_forgotten(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    assert disk.load() == (0, {})
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 3, [])
    parts = [Part(uid, 1, 1, number) for number, uid in enumerate(["a", "b", "c", "d"], 1)]
    journal.add(4, parts)
    end = account.end_of([], 0, 1.0, False, account.Used())
    lines = [text(write_report(Ended(uid, end))) for uid in "ab"]
    Path(journal.end_path(1)).write_bytes(b"\n".join([*lines, b'{"uid":']))
    journal.forget(["c"])
    parts[3].state, parts[3].reason = PartState.LOST, Lost("d", "why")
    journal.lost(parts[3])
    with open(tmp_path / "journal", "ab") as f:
        f.write(b'{"seq":99,"par')
    wanted = (4, {"a": PartState.GONE, "b": PartState.PREPARING, "d": PartState.LOST})
    assert disk.load() == wanted, "an end file is believed about its own shepherd's parts only"
    former = Journal(str(tmp_path)).load()
    journal.rewrite("boot", former.seq, former.parts.values())
    journal.drop_former_ends()
    assert disk.load() == wanted


def test_a_damaged_entry_takes_no_other_with_it(tmp_path: Path) -> None:
    """Whatever byte of it is another: the starter begins."""
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 3, [])
    journal.add(4, [Part("a", 1, 1, 1)])
    journal.add_shepherds([RecordedShepherd(1, 12345, 6789, 1000)])
    journal.add(5, [Part("b", 1, 1, 2)])
    path = tmp_path / "journal"
    whole = path.read_bytes().rstrip(b"\0")
    for at in range(len(whole)):
        for value in b'\0\xff"E-.':
            path.write_bytes(whole[:at] + bytes((value,)) + whole[at + 1 :])
            assert len(Journal(str(tmp_path)).load().parts) >= 1


def test_a_journal_that_cannot_be_read_is_not_taken_for_none(tmp_path: Path) -> None:
    (tmp_path / "journal").symlink_to("journal")  # ELOOP, for root too
    with pytest.raises(OSError, match="journal"):
        Journal(str(tmp_path)).load()


def test_an_end_in_the_journal_is_that_of_an_end_file(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 0, [])
    parts = [Part(uid, 1, 1, 1) for uid in "abc"]
    journal.add(1, parts)
    for part, status in zip(parts[:2], (0, 9), strict=True):
        part.end, part.state = account.end_of([], status, 1.0, False, account.Used()), PartState.GONE
        journal.ended(part.ended(Ended(part.uid, part.end)))
    journal.forget(["a"])
    journal.sync()
    former = Journal(str(tmp_path)).load().parts
    assert {uid: (part.end, part.state) for uid, part in former.items()} == {
        "b": (parts[1].end, PartState.PREPARING),
        "c": (None, PartState.PREPARING),
    }, "what an end says of a part is decided when its starter is gone"


def test_entries_that_a_full_disk_has_no_room_for_harm_no_other(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 0, [])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    written, refused = [], []

    def add(number: int) -> None:
        uid = f"u{number}-{'x' * (number * 37 % 200)}"
        try:
            journal.add(number, [Part(uid, 1, 1, number)])
            written.append(uid)
        except OSError:
            refused.append(uid)

    for number in range(1, 40):
        add(number)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.size + FILLED // 2, hard))
    try:
        for number in range(40, 1000):
            add(number)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refused
    for number in range(1000, 1600):
        add(number)
    assert list(Journal(str(tmp_path)).load().parts) == written


def test_the_end_file_of_a_dead_shepherd_is_given_to_a_new_one_without_its_ends(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 0, [])
    end = ends.encode_end("a", account.end_of([], 9, 1.0, False, account.Used()))
    first = journal.make_ends(1)
    end.write(first.fd)
    first.close()
    made = Path(journal.end_path(1)).stat()
    assert set(ends.read_ends(journal.end_path(1))) == {"a"}
    journal.remove_ends(1)
    second, third = journal.make_ends(2), journal.make_ends(3)
    assert not Path(journal.end_path(1)).exists()
    now = Path(journal.end_path(2)).stat()
    assert (now.st_ino, now.st_size) == (made.st_ino, made.st_size)
    assert Path(journal.end_path(3)).stat().st_ino != made.st_ino
    assert ends.read_ends(journal.end_path(2)) == {}
    end.write(second.fd)
    assert set(ends.read_ends(journal.end_path(2))) == {"a"}
    second.close()
    third.close()

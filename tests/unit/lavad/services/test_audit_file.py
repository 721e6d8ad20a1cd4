"""The audit file: lines in order, moved away when large, found again when somebody moved it, and no wait for a disk."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from lavad.configure.difference import differences
from lavad.core.site.conf import Conf, Params
from lavad.services import audit_file
from lavad.services.audit import BURST, Audit
from lavad.services.audit_file import AuditFile
from tests.support.wait import wait_until


def numbers(path: Path) -> list[int]:
    return [msgspec.json.decode(line)["n"] for line in path.read_bytes().splitlines()]


def test_lines_are_written_in_order_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "lava.audit"
    file = AuditFile(str(path))
    for number in range(1000):
        file.put({"n": number})
    file.close(10)
    assert numbers(path) == list(range(1000))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_was_moved_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "lava.audit"
    file = AuditFile(str(path))
    file.put({"n": 1})
    wait_until(lambda: path.exists() and numbers(path) == [1], 30)
    path.rename(tmp_path / "old")
    file.put({"n": 2})
    file.close(10)
    assert (numbers(tmp_path / "old"), numbers(path)) == ([1], [2])


def test_a_large_file_is_moved_away_and_some_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_file, "LARGEST", 200)
    monkeypatch.setattr(audit_file, "AT_ONCE", 10)
    monkeypatch.setattr(audit_file, "KEPT", 3)
    path = tmp_path / "lava.audit"
    file = AuditFile(str(path))
    for number in range(500):
        file.put({"n": number, "text": "x" * 20})
    file.close(10)
    assert {"lava.audit.1", "lava.audit.2", "lava.audit.3"} <= set(os.listdir(tmp_path)) <= {
        "lava.audit", "lava.audit.1", "lava.audit.2", "lava.audit.3",
    }  # fmt: skip
    newest = numbers(tmp_path / "lava.audit.3") + numbers(tmp_path / "lava.audit.2") + numbers(tmp_path / "lava.audit.1")
    assert newest == list(range(newest[0], newest[-1] + 1))


def test_a_disk_that_takes_nothing_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_file, "WAITING", 100)
    monkeypatch.setattr(audit_file, "PAUSE", 0.01)
    folder = tmp_path / "away"
    path = folder / "lava.audit"
    file = AuditFile(str(path))
    for number in range(5000):
        file.put({"n": number})
    folder.mkdir()
    wait_until(lambda: path.exists() and b"lost_entries" in path.read_bytes(), 30)
    file.close(10)
    rows = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    lost = sum(row.get("lost_entries", 0) for row in rows)
    assert lost + sum("n" in row for row in rows) == 5000
    assert [row["n"] for row in rows if "n" in row] == sorted(row["n"] for row in rows if "n" in row)


def test_a_change_of_the_configuration_has_old_and_new_values_without_secrets() -> None:
    old, new = Conf(params=Params(clean_period=10)), Conf(params=Params(clean_period=20), admins=("ann",))
    assert ("params.clean_period", "10", "20") in list(differences(old, new))
    assert [name for name, _, _ in differences(old, new)] == ["admins", "params.clean_period"]
    assert list(differences(old, old)) == []
    queue = old.queues[0]
    more = Conf(queues=(queue, msgspec.structs.replace(queue, name="night", priority=7)))
    assert ("queues[night].priority", "", "7") in list(differences(Conf(queues=(queue,)), more))


def test_hosts_that_are_not_let_in_and_floods_of_them() -> None:
    entries: list[dict[str, object]] = []
    now = [1000.0]
    audit = Audit(entries.append, Conf, lambda: now[0])
    for _ in range(100):
        audit.host_refused("node7", "ipv4:10.0.0.7:4711", "no certificate of an agent")
    assert [entry["ask"] for entry in entries] == ["session"] * BURST
    assert (entries[0]["host"], entries[0]["address"]) == ("node7", "ipv4:10.0.0.7:4711")
    audit.flush()
    assert (entries[-1]["host"], entries[-1]["more_like_this"]) == ("node7", 100 - BURST)
    now[0] += 1000.0
    audit.flush()
    audit.flush()
    assert len(entries) == BURST + 1
    assert not audit._refusals, "who was not refused lately is forgotten"

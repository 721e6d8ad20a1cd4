"""Which checkpoint generations are whole, and what a restart finds of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.starter.part import generations
from agent.starter.part.user_files import find_generations
from agent.starter.protocol.orders import FindGenerations
from agent.starter.protocol.part import User


def write(folder: Path, number: int, data: bytes = b"state", **manifest: object) -> Path:
    """Generation ``number`` with one file."""
    made = folder / f"gen-{number}"
    made.mkdir()
    (made / "a").write_bytes(data)
    files = {"a": {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}}
    (made / "MANIFEST").write_text(json.dumps({"generation": number, "files": files} | manifest))
    return made


def damage(made: Path, how: str) -> None:
    match how:
        case "shorter":
            (made / "a").write_bytes(b"stat")
        case "other":
            (made / "a").write_bytes(b"stats")
            (made / "a").write_bytes(b"State")
        case "gone":
            (made / "a").unlink()
        case "link":
            (made / "a").rename(made / "b")
            (made / "a").symlink_to("b")
        case "fifo":
            (made / "a").unlink()
            os.mkfifo(made / "a")
        case text:
            (made / "MANIFEST").write_text(text)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("shorter", "file a has 4 bytes, and 5 in the manifest"),
        ("other", "file a has another SHA-256 than the manifest"),
        ("gone", "file a cannot be read: No such file or directory"),
        ("link", "file a cannot be read: Too many levels of symbolic links"),
        ("fifo", "file a is no plain file"),
        ("", "MANIFEST: Expecting value: line 1 column 1 (char 0)"),
        ("[]", "MANIFEST: it lists no files"),
        ('{"files": {"a": 5}}', "MANIFEST: it does not say how large 'a' is"),
        ('{"files": {"a": {"size": -1}}}', "MANIFEST: it does not say how large 'a' is"),
        ('{"files": {"../a": {"size": 5}}}', "MANIFEST: it names '../a', outside of the generation"),
        ('{"files": {"/etc/passwd": {"size": 5}}}', "MANIFEST: it names '/etc/passwd', outside of the generation"),
        ("[" * 100_000, "MANIFEST: it is nested too deeply"),
    ],
)
def test_what_is_not_as_its_manifest_says_is_damaged(tmp_path: Path, how: str, why: str) -> None:
    made = write(tmp_path, 1)
    assert generations.check(str(made)) == (5, "")
    damage(made, how)
    assert generations.check(str(made))[1] == why


def test_a_file_without_a_digest_counts_by_its_size(tmp_path: Path) -> None:
    made = write(tmp_path, 1, files={"a": {"size": 5}})
    assert generations.check(str(made)) == (5, "")


def test_generations_above_the_known_one_are_told_apart(tmp_path: Path) -> None:
    for number in (1, 2, 3, 10):
        write(tmp_path, number)
    damage(tmp_path / "gen-3", "gone")
    (tmp_path / "gen-11").mkdir()
    found = find_generations(FindGenerations("look", User("me", 1, 1, ()), str(tmp_path), 1))
    assert found.whole == ((2, 5), (10, 5))
    assert [number for number, _ in found.damaged] == [3]
    gone = find_generations(FindGenerations("look", User("me", 1, 1, ()), str(tmp_path / "no"), 1))
    assert gone.error == "No such file or directory"


def test_a_restart_finds_the_newest_whole_one(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        write(tmp_path, number)
    damage(tmp_path / "gen-3", "gone")
    assert generations.set_aside(str(tmp_path))[0] == 2
    assert sorted(name.name for name in tmp_path.iterdir()) == ["gen-1", "gen-2", "gen-3.damaged"]
    write(tmp_path, 3)
    damage(tmp_path / "gen-3", "gone")
    done = subprocess.run(
        [sys.executable, "-I", "-S", generations.__file__, str(tmp_path), "1"], capture_output=True, text=True, check=True
    )
    assert "generation 3: the job goes back to generation 1" in done.stderr
    assert sorted(name.name for name in tmp_path.iterdir()) == ["gen-1", "gen-2.damaged", "gen-3.damaged", "gen-3.damaged.1"]
    assert generations.set_aside(str(tmp_path), 0) == (-1, ["generation 1: the job goes back to generation 0"])

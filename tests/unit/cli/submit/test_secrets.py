"""What is said of secrets when a job is submitted: those whose files are not on this host."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.submit.submission import missing_secrets


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (None, []),
        ("KEPT", []),
        ("KEPT LOST", ["LOST"]),
        ("A=~/own B=~/other", ["B"]),
        ("A={home}/own B={home}/other C=/", ["B"]),
    ],
)
def test_secrets_without_a_file_are_found(tmp_path: Path, given: str | None, names: list[str]) -> None:
    kept = tmp_path / ".lava/secrets"
    kept.mkdir(parents=True)
    (kept / "KEPT").touch()
    (tmp_path / "own").touch()
    found = missing_secrets(given and given.format(home=tmp_path), str(tmp_path))
    assert [name for name, _ in found] == names
    assert all(path.startswith(str(tmp_path)) for _, path in found)


def test_a_file_that_nobody_can_name_is_missing() -> None:
    assert missing_secrets("A=\x00", "/nowhere") == [("A", "/nowhere/\x00")]

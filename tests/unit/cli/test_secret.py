"""lava secret: what is no value is refused, and what was kept stays."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from cli import secret
from proto.options import SECRETS_FOLDER


@pytest.mark.parametrize(("value", "why"), [(b"", "no value came on standard input"), (b"x" * 65_537, "longer than 65536 bytes")])
def test_what_is_no_value_changes_nothing(
    value: bytes, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for given, status in ((b"kept", 0), (value, 1)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
        assert secret.main(["set", "TOKEN"]) == status
    assert capsys.readouterr().err == f"lava secret: TOKEN: {why}\n"
    file = tmp_path / SECRETS_FOLDER / "TOKEN"
    assert (file.read_bytes(), os.stat(file).st_mode & 0o777) == (b"kept", 0o600)

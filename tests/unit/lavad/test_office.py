"""lavad before it serves: where its store is."""

from __future__ import annotations

from pathlib import Path

import pytest

from lavad import office


def test_a_store_at_the_place_of_an_older_version_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    former, spool = tmp_path / "lava" / "lavad.sqlite", tmp_path / "lava-master"
    monkeypatch.setattr(office, "FORMER_STORE", str(former))
    monkeypatch.setattr(office, "SPOOL", str(spool))
    database = f"sqlite:///{spool}/lavad.sqlite"
    office._refuse_to_leave_a_store(database, str(spool))
    for path in (former, spool / "lavad.sqlite"):
        path.parent.mkdir()
    former.touch()
    with pytest.raises(office.Cannot, match="move it"):
        office._refuse_to_leave_a_store(database, str(spool))
    office._refuse_to_leave_a_store("postgresql://db/lava", str(spool))
    office._refuse_to_leave_a_store(f"sqlite:///{tmp_path}/data/lavad.sqlite", f"{tmp_path}/data")
    (spool / "lavad.sqlite").touch()
    office._refuse_to_leave_a_store(database, str(spool))

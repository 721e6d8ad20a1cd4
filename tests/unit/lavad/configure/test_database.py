"""Where the URL of the store stands: one line for a file that does not hold it, and never another store."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.model.site_params import SiteParams
from lavad.configure.database import database_url
from lavad.store.errors import StoreRefused

URL = "postgresql://lavad:sesame@db/lava"


def test_the_command_line_comes_first_then_a_file_then_lsf_conf(tmp_path: Path) -> None:
    (tmp_path / "url").write_text(f"{URL}\n")
    params = SiteParams(lava_database_url="postgresql://h/d", lava_spooldir="/spool")
    assert database_url(params, "sqlite:///x", str(tmp_path / "url")) == "sqlite:///x"
    assert database_url(params, "", str(tmp_path / "url")) == URL
    assert database_url(params) == "postgresql://h/d"
    assert database_url(SiteParams(lava_database_url_file=str(tmp_path / "url"))) == URL
    assert database_url(SiteParams(lava_spooldir="/spool")) == "sqlite:////spool/lavad.sqlite"


@pytest.mark.parametrize(
    ("content", "why"), [(None, "database: No such file or directory"), (b"\n", "is empty"), (b"\xff\xfe", "this is not text")]
)
def test_a_file_without_it_is_named(tmp_path: Path, content: bytes | None, why: str) -> None:
    """An empty one is what a full disk leaves of it: SQLite would then be a second store."""
    file = tmp_path / "url"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(StoreRefused, match=f"^{file}, which should hold the URL of the database.* {why.split()[-1]}$") as refused:
        database_url(SiteParams(lava_database_url_file=str(file)))
    assert why in str(refused.value)

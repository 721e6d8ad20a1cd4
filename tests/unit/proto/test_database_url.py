"""Which URLs name a store, as `badmin ckconfig` says without SQLAlchemy, beside what SQLAlchemy reads."""

from __future__ import annotations

import pytest
from sqlalchemy.engine import make_url

from proto.database_url import find_kind, why_no_database

GOOD = (
    "postgresql://h/d",
    "postgres://h/d",
    "postgresql+psycopg://ann:p%40ss@db.example.org:5432/lava?sslmode=require",
    "postgresql://[::1]:5432/lava",
    "postgresql://ann:se/cret@h/d",
    "postgresql:///lava?host=/run/postgresql",
    "postgresql://",
    "sqlite:////var/lib/lava/store",
    "sqlite:///relative",
)


@pytest.mark.parametrize("url", GOOD)
def test_what_is_taken_is_read_by_sqlalchemy_too(url: str) -> None:
    assert why_no_database(url) == ""
    assert make_url(url).get_backend_name() in (find_kind(url), "postgres")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("nonsense", "not a database URL"),
        ("postgresql//h/d", "not a database URL"),
        ("mysql://ann:secret@h/d", "mysql: only sqlite and postgresql are supported"),
        ("postgresql://ann:secret@h:x/d", "its port is no number from 1 to 65535"),
        ("postgresql://ann:a@secret:b@h/d", "its port is no number from 1 to 65535"),
        ("postgresql://h:99999/d", "its port is no number from 1 to 65535"),
        ("sqlite://", "a sqlite store needs a file"),
        ("sqlite:///:memory:", "a sqlite store needs a file"),
    ],
)
def test_why_another_is_refused_without_what_may_be_a_password(url: str, why: str) -> None:
    said = why_no_database(url)
    assert why in said
    assert "secret" not in said

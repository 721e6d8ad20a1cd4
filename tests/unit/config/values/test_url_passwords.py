"""Passwords in the URLs of databases."""

from __future__ import annotations

import pytest

from config.values.url_passwords import without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:pw@h:5/d", "postgresql://ann:***@h:5/d"),
        ("postgresql://ann:p/w:x@h/d", "postgresql://ann:***@h/d"),
        ("postgresql://:pw@h/d", "postgresql://:***@h/d"),
        ("postgresql://h/d?user=ann&Password=pw&sslmode=require", "postgresql://h/d?user=ann&Password=***&sslmode=require"),
        ("postgresql://ann@h:5/d?host=/run", "postgresql://ann@h:5/d?host=/run"),
        ("sqlite:////var/lib/lava/d", "sqlite:////var/lib/lava/d"),
        ("a: b", "a: b"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown

"""LSB_MAILTO: where mail of a job goes."""

from __future__ import annotations

import pytest

from config.read.params import mail_pattern
from config.values import values as v
from lavad.core.job.spec import JobText, Spec
from lavad.core.site.mail_to import mail_to

SPEC = Spec(queue="normal", user="ann", from_host="login1")


@pytest.mark.parametrize(
    ("pattern", "text", "wanted"),
    [
        ("", JobText(command="c"), "ann"),
        ("!U", JobText(command="c"), "ann"),
        ("!U@example.org", JobText(command="c"), "ann@example.org"),
        ("!U@!H", JobText(command="c"), "ann@login1"),
        ("!U@example.org", JobText(command="c", mail_user="bob"), "bob"),
        ("!U@example.org", JobText(command="c", output="out"), ""),
        ("!U@example.org", JobText(command="c", output="out", notify_end=True), "ann@example.org"),
    ],
)
def test_where_mail_goes(pattern: str, text: JobText, wanted: str) -> None:
    assert mail_to(SPEC, text, pattern) == wanted


@pytest.mark.parametrize("value", ["-t@x", "!U@x y", "!U;rm", "!U\n"])
def test_no_address(value: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        mail_pattern(value, v.Scope())

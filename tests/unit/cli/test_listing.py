"""bacct -M: hosts of a file, read where the command runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.client.context import Context, Fail
from cli.listing import add_hosts_of_file


def test_hosts_of_a_file_join_those_of_the_option(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("a b\n# none\nc # d\n")
    options: dict[str, str | bool | list[str]] = {"M": "hosts", "m": "x"}
    add_hosts_of_file(Context([], cwd=str(tmp_path)), options)
    assert options == {"m": "x a b c"}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [("no", None, "No such file"), ("empty", "# x\n", "no host is in it"), ("\0", None, "Bad file name")],
)
def test_a_file_that_is_of_no_use(tmp_path: Path, name: str, text: str | None, why: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(Fail, match=why):
        add_hosts_of_file(Context([], cwd=str(tmp_path)), {"M": name})

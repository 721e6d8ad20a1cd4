"""Where a cluster is from afar, by arguments and environment, and which tokens are taken from which files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lava_client.errors import Unavailable
from lava_client.service import find_service

URL = "http://127.0.0.1:1"


def test_arguments_come_before_the_environment_and_a_job_has_its_own_cluster() -> None:
    environ = {"LAVA_URL": URL, "LAVA_TOKEN": "t"}
    assert find_service({}) is None
    found = find_service(environ)
    assert found is not None
    assert (found.host, found.port, found.prefix, found.token.text, found.url) == ("127.0.0.1", 1, "", "t", URL)
    named = find_service(environ, "https://page.site/lava/", "mine")
    assert named is not None
    assert (named.url, named.token.text) == ("https://page.site:443/lava", "mine")
    # the LAVA_TOKEN of a job's environment is the job's
    assert find_service({**environ, "LSB_JOBID": "7"}) is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://page.site", "over https only"),
        ("ftp://page.site", "is expected"),
        ("page.site:80", "is expected"),
        ("https://", "is expected"),
        ("https://me:pass@page.site", "is expected"),
        ("https://page.site:none", "page.site:none: "),
    ],
)
def test_an_address_that_is_none_or_not_safe_is_refused(url: str, why: str) -> None:
    with pytest.raises(Unavailable, match=why):
        find_service({}, url, "t")


def test_a_token_comes_from_a_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(Unavailable, match="token: No such file"):
        find_service({}, URL, token_file=str(file))
    file.write_text("one\n")
    file.chmod(0o640)
    with pytest.raises(Unavailable, match="others can read"):
        find_service({"LAVA_TOKEN_FILE": str(file)}, URL)
    file.chmod(0o600)
    found = find_service({"LAVA_TOKEN_FILE": str(file)}, URL)
    assert found is not None
    assert (found.token.text, found.token.is_renewed()) == ("one", False)
    file.write_text("two")
    assert (found.token.is_renewed(), found.token.text) == (True, "two")
    for text in ("", "two words", "\x1b"):
        file.write_text(text)
        with pytest.raises(Unavailable, match="it holds no token"):
            find_service({}, URL, token_file=str(file))
    with pytest.raises(Unavailable, match="no-authority: No such file"):
        find_service({}, "https://page", "t", ca_file=str(tmp_path / "no-authority"))


def test_a_token_may_end_with_a_line_and_is_no_other_text() -> None:
    found = find_service({}, URL, token="one\n")
    assert found is not None
    assert found.token.text == "one"
    for wrong in ("one two", "one\ntwo", "\u00e9", " "):
        with pytest.raises(Unavailable, match="token= or LAVA_TOKEN: it holds no token"):
            find_service({"LAVA_TOKEN": wrong}, URL)


def test_without_any_token_it_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(Unavailable, match="lava token makes one"):
        find_service({"LAVA_URL": URL})
    (tmp_path / ".lava").mkdir()
    file = tmp_path / ".lava/token"
    file.touch(0o600)
    file.write_text("kept")
    found = find_service({"LAVA_URL": URL})
    assert found is not None
    assert found.token.text == "kept"

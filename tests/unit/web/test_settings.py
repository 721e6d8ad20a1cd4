"""How the page is served, from lsf.conf."""

from __future__ import annotations

from pathlib import Path

import pytest

from web.settings import BadSettings, read


def test_without_parameters_it_is_on_loopback() -> None:
    found = read({})
    assert (found.host, found.port, found.is_secure) == ("127.0.0.1", 16880, False)
    assert found.names() == {"127.0.0.1", "localhost", "[::1]"}


def test_the_address_of_browsers_is_one_of_its_names() -> None:
    found = read({"LAVA_WEB_URL": "https://lava.example/", "LAVA_WEB_ADDRESS": "8080"})
    assert (found.url, found.port, found.is_secure) == ("https://lava.example", 8080, True)
    assert "lava.example" in found.names()


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({"LAVA_WEB_ADDRESS": "0.0.0.0:80"}, "without LAVA_WEB_CERT"),
        ({"LAVA_WEB_ADDRESS": "x"}, "PORT is expected"),
        ({"LAVA_WEB_CERT": "c"}, "go together"),
        ({"LAVA_WEB_PROXIES": "proxy"}, "address of a reverse proxy"),
        ({"LAVA_WEB_PROXIES": "10.0.0.1"}, "LAVA_WEB_PROXY_SECRET_FILE"),
        ({"LAVA_WEB_PROXIES": "10.0.0.1", "LAVA_WEB_PROXY_SECRET_FILE": "/none"}, "/none"),
    ],
)
def test_what_is_not_safe_is_refused(conf: dict[str, str], words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        read(conf)


def test_a_proxy_has_a_secret(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("x" * 20 + "\n")
    found = read({"LAVA_WEB_PROXIES": "10.0.0.1 ::1", "LAVA_WEB_PROXY_SECRET_FILE": str(tmp_path / "s")})
    assert (found.proxies, found.proxy_secret) == (("10.0.0.1", "::1"), "x" * 20)

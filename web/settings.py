"""How the page is served: from lsf.conf and the command line."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from config.lsfconf import RUNDIR
from proto.listen_address import is_loopback, split_address

PORT = 16880
SHORTEST = 20


class BadSettings(Exception):
    """Why the page cannot be served, in one line."""


class Settings(NamedTuple):
    """``proxies``: addresses of the site's reverse proxy, whose header ``proxy_header`` names the user; (): there is none."""

    run: str
    host: str
    port: int
    url: str
    """What browsers open, without a slash at its end; "": by host and port."""
    cert: str = ""
    key: str = ""
    proxies: tuple[str, ...] = ()
    proxy_header: str = "X-Remote-User"
    proxy_secret: str = ""
    """What the proxy proves itself with, in the header X-Lava-Proxy-Secret: others on its host have its address too."""

    @property
    def is_secure(self) -> bool:
        """Browsers come by https."""
        return bool(self.cert) or self.url.startswith("https:")

    def names(self) -> frozenset[str]:
        """The hosts in a request's Host header that are meant; others are refused, as another site's name may lead here."""
        own = {"localhost", "127.0.0.1", "[::1]", f"[{self.host}]" if ":" in self.host else self.host}
        named = urlsplit(self.url).hostname
        return frozenset({*own, *([named] if named else [])} - {"0.0.0.0", "[::]"})


def read(conf: Mapping[str, str], run: str = "", address: str = "") -> Settings:
    """``address``: ``[HOST:]PORT``, before LAVA_WEB_ADDRESS; port 0 is any that is free. Raises BadSettings."""
    try:
        host, port = split_address(address or conf.get("LAVA_WEB_ADDRESS", "") or str(PORT))
    except ValueError as error:
        raise BadSettings(str(error)) from None
    proxies = tuple(conf.get("LAVA_WEB_PROXIES", "").split())
    settings = Settings(
        run=run or conf.get("LAVA_RUNDIR") or RUNDIR,
        host=host,
        port=port,
        url=conf.get("LAVA_WEB_URL", "").rstrip("/"),
        cert=conf.get("LAVA_WEB_CERT", ""),
        key=conf.get("LAVA_WEB_KEY", ""),
        proxies=tuple(_address(word) for word in proxies),
        proxy_header=conf.get("LAVA_WEB_PROXY_HEADER", "") or "X-Remote-User",
        proxy_secret=_secret(conf.get("LAVA_WEB_PROXY_SECRET_FILE", "")),
    )
    if settings.proxies and len(settings.proxy_secret) < SHORTEST:
        raise BadSettings(f"LAVA_WEB_PROXIES needs LAVA_WEB_PROXY_SECRET_FILE, with {SHORTEST} characters or more")
    if bool(settings.cert) != bool(settings.key):
        raise BadSettings("LAVA_WEB_CERT and LAVA_WEB_KEY go together")
    if not settings.cert and not is_loopback(host):
        raise BadSettings(f"{host}: without LAVA_WEB_CERT the page is served on loopback only, perhaps behind a reverse proxy")
    return settings


def _secret(path: str) -> str:
    try:
        return Path(path).read_text().strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"LAVA_WEB_PROXY_SECRET_FILE: {path}: {error}") from None


def _address(word: str) -> str:
    try:
        return str(ipaddress.ip_address(word))
    except ValueError:
        raise BadSettings(f"LAVA_WEB_PROXIES: {word}: the address of a reverse proxy is expected") from None

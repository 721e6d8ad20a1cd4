"""Where a cluster is from afar: the address of its page, the certificate that it has to have, and the user's token."""

from __future__ import annotations

import ipaddress
import os
import ssl
import stat
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from lava_client.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_TOKEN_FILE = "~/.lava/token"
LARGEST_TOKEN = 8192


class Token:
    """The user's token: as given, or as a file has it, which is read again when the cluster takes it no more."""

    def __init__(self, text: str, path: str = "") -> None:
        self._path = path
        self.text = _checked(text, "token= or LAVA_TOKEN") if text else _read(path)

    def is_renewed(self) -> bool:
        """Whether the file has another one by now, which is then taken. Raises Unavailable."""
        old = self.text
        if self._path:
            self.text = _read(self._path)
        return self.text != old


class Service(NamedTuple):
    """A cluster's REST. ``context``: None where it is on this machine, without TLS."""

    host: str
    port: int
    prefix: str
    """Of every path, without a slash at its end."""
    context: ssl.SSLContext | None
    token: Token

    @property
    def url(self) -> str:
        """For messages."""
        return f"{'https' if self.context else 'http'}://{self.host}:{self.port}{self.prefix}"


def find_service(
    environ: Mapping[str, str], url: str = "", token: str = "", token_file: str = "", ca_file: str = ""
) -> Service | None:
    """The service that the arguments name, else the environment (LAVA_URL, LAVA_TOKEN or LAVA_TOKEN_FILE, LAVA_CA_FILE).

    None: the cluster of this host. In a job of lava the environment does not count: LAVA_TOKEN is the job's own there, and its
    cluster is at hand. Raises Unavailable.
    """
    said: Mapping[str, str] = {} if environ.get("LSB_JOBID") else environ
    url = url or said.get("LAVA_URL", "")
    if not url:
        return None
    path = "" if token else token_file
    if not (token or path):
        token, path = said.get("LAVA_TOKEN", ""), said.get("LAVA_TOKEN_FILE", "")
    if not (token or path):
        path = os.path.expanduser(DEFAULT_TOKEN_FILE)
        if not os.path.exists(path):
            raise Unavailable(
                f"{url}: no token: Cluster(token=), LAVA_TOKEN, or a file {DEFAULT_TOKEN_FILE} (lava token makes one)"
            )
    parts = _parts(url)
    context = None
    if parts.scheme == "https":
        file = ca_file or said.get("LAVA_CA_FILE") or None
        try:
            context = ssl.create_default_context(cafile=file)
        except (OSError, ssl.SSLError) as error:
            raise Unavailable(f"{file}: {error.strerror or error}") from None
        # Python 3.13 and later refuse certificates without key identifiers, which `lava certs` of earlier versions made
        if file:
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    port = parts.port or (443 if context else 80)
    return Service(parts.hostname or "", port, parts.path.rstrip("/"), context, Token(token, path))


class _Parts(NamedTuple):
    scheme: str
    hostname: str
    port: int | None
    path: str


def _parts(url: str) -> _Parts:
    """Raises Unavailable for what is no address, or one where others could read the token on its way."""
    try:
        parts = urlsplit(url)
        found = _Parts(parts.scheme, parts.hostname or "", parts.port, parts.path)
    except ValueError as error:
        raise Unavailable(f"{url}: {error}") from None
    if found.scheme not in ("http", "https") or not found.hostname or parts.query or parts.username:
        raise Unavailable(f"{url}: https://HOST[:PORT] is expected")
    if found.scheme == "http" and not _is_here(found.hostname):
        raise Unavailable(f"{url}: a token goes over https only, or to this machine (ssh -L brings a page here)")
    return found


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read(path: str) -> str:
    """The token in a file that nobody else can read. Raises Unavailable."""
    try:
        with open(path, encoding="ascii") as file:
            known = os.fstat(file.fileno())
            if not stat.S_ISREG(known.st_mode) or known.st_uid != os.getuid() or known.st_mode & 0o077:
                raise Unavailable(f"{path}: others can read this token, or it is another user's: chmod 600")
            text = file.read(LARGEST_TOKEN)
    except (OSError, UnicodeDecodeError) as error:
        raise Unavailable(f"{path}: {getattr(error, 'strerror', None) or 'it holds no token'}") from None
    return _checked(text, path)


def _checked(text: str, where: str) -> str:
    """The token, as it goes into a header. Raises Unavailable."""
    text = text.strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise Unavailable(f"{where}: it holds no token")
    return text

"""How this host sends mail: the site's mailer, or its mail server."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from proto.daemon import smtp

_SMTP = "smtp:"


def mailer(conf: Mapping[str, str]) -> str:
    """The program that sends mail, or ``smtp:SERVER`` (LSB_MAILSERVER) for one; "": there is neither. ``conf``: lsf.conf."""
    server = conf.get("LSB_MAILSERVER", "")
    if server and not conf.get("LSB_MAILPROG"):
        return _SMTP + (server[len(_SMTP) :] if server.lower().startswith(_SMTP) else server)
    found = conf.get("LSB_MAILPROG") or "/usr/sbin/sendmail"
    return found if os.access(found, os.X_OK) else ""


def is_server(program: str) -> bool:
    """Whether what ``mailer`` gives is a mail server, which a program of lava's own asks."""
    return program.startswith(_SMTP)


def words(program: str, admin: str, to: str) -> list[str]:
    """The command that mails its standard input. ``program``: as ``mailer`` gives it."""
    if is_server(program):
        return [sys.executable, "-I", smtp.__file__, program[len(_SMTP) :], admin, to]
    return [program, "-oi", "-FLSF", f"-f{admin}", to]


def head(admin: str, to: str) -> str:
    """The first lines of a mail."""
    return f"To: {to}\nFrom: LSF <{admin}>\n"

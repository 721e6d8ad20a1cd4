"""How this host sends mail: the site's mailer, or its mail server."""

from __future__ import annotations

import os
import sys

from agent.launch import smtp
from agent.launch.site import Site

_SMTP = "smtp:"


def mailer(site: Site) -> str:
    """The program that sends mail, or ``smtp:SERVER`` (LSB_MAILSERVER) for one; "" when the host has neither."""
    server = site.conf.get("LSB_MAILSERVER", "")
    if server and not site.conf.get("LSB_MAILPROG"):
        return _SMTP + (server[len(_SMTP) :] if server.lower().startswith(_SMTP) else server)
    found = site.conf.get("LSB_MAILPROG") or "/usr/sbin/sendmail"
    return found if os.access(found, os.X_OK) else ""


def words(program: str, admin: str, to: str) -> list[str]:
    """The command that mails its standard input. ``program``: as ``mailer`` gives it."""
    if program.startswith(_SMTP):
        return [sys.executable, "-I", smtp.__file__, program[len(_SMTP) :], admin, to]
    return [program, "-oi", "-FLSF", f"-f{admin}", to]


def head(admin: str, to: str) -> str:
    """The first lines of a mail."""
    return f"To: {to}\nFrom: LSF <{admin}>\n"

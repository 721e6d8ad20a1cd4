"""How exceptions are told: to the site's program eadmin in LSF_SERVERDIR, else in a mail to the administrators.

Rule: both run in a child, as ``config.programs.as_admin`` says; words of users are on its standard input only. What asks a
directory of users or a file system does so in a thread.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from config.programs.as_admin import AsAdmin
from lavad.core.site.conf import Conf
from lavad.services.exceptions.found import Found, addressed, host_mail, lines_for_program, mail_of
from proto.daemon import mailing
from proto.daemon.programs import Account
from proto.daemon.workers import Workers
from proto.names import NoAnswer

log = logging.getLogger(__name__)

SECONDS = 60.0
"""That eadmin, or what mails, may take."""


class _Means(NamedTuple):
    """A program, and what it reads."""

    words: list[str]
    given: bytes
    account: Account | None


class Teller:
    """Tells of those of one cluster."""

    def __init__(self, as_admin: AsAdmin, conf: Callable[[], Conf]) -> None:
        self._as_admin = as_admin
        self._conf = conf
        self._looking = Workers("eadmin")
        self._said = ""
        """What kept the last exceptions from being told."""

    async def jobs(self, found: Sequence[Found]) -> bool:
        """Tell of exceptions of jobs; False: it is to be tried again."""
        conf = self._conf()
        extended = conf.params.extend_job_exception_notification
        return await self._tell("job", lambda: lines_for_program(found), lambda: mail_of(found, conf.cluster, extended))

    async def hosts(self, hosts: Sequence[tuple[str, str]]) -> bool:
        """Tell of hosts that were closed, (name, why); False: it is to be tried again."""
        lines = "".join(f"{name}\t{why}\n" for name, why in hosts).encode(errors="replace")
        return await self._tell("host", lambda: lines, lambda: host_mail(hosts, self._conf().cluster))

    async def _tell(self, kind: str, lines: Callable[[], bytes], mail: Callable[[], str]) -> bool:
        try:
            means = await self._looking.run(self._means, kind, lines, mail)
        except (NoAnswer, LookupError, OSError) as error:
            return self._failed(f"exceptions cannot be told: {error}")
        if means is None:
            self._failed("exceptions of jobs and hosts are told to nobody: there is no eadmin in LSF_SERVERDIR, and no mailer")
            return True
        how, text = await self._as_admin.run(means.words, SECONDS, means.account, means.given)
        if how != "exited with 0":
            return self._failed(f"exceptions were not told: {means.words[0]} {how}{': ' + text if text else ''}")
        self._said = ""
        return True

    def _failed(self, why: str) -> bool:
        """False; the log says why once."""
        if why != self._said:
            log.warning("%s", why)
        self._said = why
        return False

    def _means(self, kind: str, lines: Callable[[], bytes], mail: Callable[[], str]) -> _Means | None:
        """What tells, None where there is nothing. May take long; raises NoAnswer, LookupError, OSError."""
        lsf, admins = self._as_admin.lsf, self._as_admin.admins()
        program = os.path.join(lsf.get("LSF_SERVERDIR") or "/nonexistent", "eadmin")
        mails = not (os.path.isfile(program) and os.access(program, os.X_OK))
        mailer = mailing.mailer(lsf) if mails else ""
        if mails and not mailer:
            return None
        words = mailing.words(mailer, admins[0], ",".join(admins)) if mails else [program, kind]
        given = addressed(mail(), admins) if mails else lines()
        return _Means(words, given, self._as_admin.account("" if mailing.is_server(mailer) else words[0]))

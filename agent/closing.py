"""What follows the end of a job on its first host: its report into the user's file, or into a mail.

Rule: the master hears of the end when the file is written; nobody waits for a mail program. An attempt after which the
job runs again leaves no report behind, only a line that says so.
"""

from __future__ import annotations

from typing import Any

from agent import saying
from agent.entry import Entry
from agent.launch import build, report
from agent.launch.site import Site

MAILER = ".mail"
"""It ends the uids of these parts."""


def is_own(uid: str) -> bool:
    """Whether the agent added this part itself."""
    return uid.endswith(MAILER)


def owner_of(uid: str) -> str:
    """The uid of the part that an own part follows."""
    return uid.rpartition(".")[0]


class Closing:
    """Makes what is to be done, for this host."""

    def __init__(self, site: Site) -> None:
        self._host = site.host
        self._mail = report.mailer(site)

    def orders(self, entry: Entry, now: float) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """(the order that writes files of the user's, the part that mails); None where there is nothing to do."""
        made = entry.made
        if made is None or entry.orphan or entry.end is None or entry.order.start.place:
            return None, None
        mail = file = None
        where = entry.where
        if self._mails(entry):
            story = saying.story(entry, self._host)
            mail = report.mail(entry.uid + MAILER, entry.order, made, self._mail, story, where)
        if where.output and where.output != build.NOWHERE and (where.kept or mail is None):
            pieces = ("", "") if mail else saying.pieces(entry, self._host, now)
            if why := saying.why_again(entry):
                pieces = ("", report.interrupted(entry.key, self._host, why, now))
            file = report.order(entry.uid, made, where, entry.folder(), pieces)
        return file, mail

    def _mails(self, entry: Entry) -> bool:
        """The report goes by mail when that is asked for (``-N``), or when there is no file that it could go to."""
        text = entry.text
        if text is None or not text.report_mail or not self._mail or saying.why_again(entry):
            return False
        return text.notify_end or not entry.where.output

"""What follows the end of a job on its first host: its report into the user's file, or into a mail.

Rule: the master hears of the end when the file is written; nobody waits for a mail program. An attempt after which the
job runs again leaves no report behind, only a line that says so.
"""

from __future__ import annotations

from agent.launch import environ, outputs, report
from agent.launch.site import Site
from agent.parts import report_messages as messages
from agent.parts.entry import Entry
from agent.starter.protocol.orders import Append, Deliver
from agent.starter.protocol.part import PartSpec
from config.lsfconf import NO
from proto.daemon import mailing

MAILER = ".mail"
BEGUN = ".begun" + MAILER
WARNING = ".warning" + MAILER
RESIZED = ".resized"
CHECKPOINT = ".checkpoint"
STAGED = ".staged"
PRE = ".pre"
POST = ".post"
FOLDER = ".folder"
"""Suffixes of the uids of parts that the agent adds itself."""


def is_own(uid: str) -> bool:
    """Whether the agent added this part itself."""
    return uid.endswith((MAILER, RESIZED, CHECKPOINT, STAGED, PRE, POST, FOLDER))


def owner_of(uid: str) -> str:
    """The uid of the part that such a part belongs to."""
    return uid.partition(".")[0]


class JobReports:
    """Makes the orders and parts that write and mail reports on this host."""

    def __init__(self, site: Site) -> None:
        self._host = site.host
        self._mail = mailing.mailer(site.conf)
        self._settings = site.settings

    def orders(self, entry: Entry, now: float) -> tuple[Append | Deliver | None, PartSpec | None]:
        """(the order that writes files of the user's, the part that mails); None where there is nothing to do."""
        made = entry.made
        if made is None or entry.orphan or entry.end is None or entry.order.start.place:
            return None, None
        mail = file = None
        where = entry.where
        if self._mails(entry):
            kept = where.kept if not where.output else ""
            mailed = where if where.output else outputs.OutputPaths(kept=kept or "-")
            before, after = report.report(made.text, messages.summary_of(entry, entry.end, self._host), mailed, now)
            if kept and (large := report.too_large(kept, self._settings.lsb_mailsize_limit, entry.key, self._host)):
                before, kept = before + large, ""
            mail = report.mail(entry.uid + MAILER, entry.order, made, self._mail, (before, kept, after))
        if where.output and where.output != outputs.NOWHERE and not made.text.interactive and (where.kept or mail is None):
            pieces = ("", "") if mail else report.report(made.text, messages.summary_of(entry, entry.end, self._host), where, now)
            if why := messages.why_again(entry):
                pieces = ("", report.interrupted(entry.key, self._host, why, now, not entry.dropped))
            file = report.order(entry.uid, made, where, entry.folder(), pieces)
        return file, mail

    def begun(self, entry: Entry, now: float) -> PartSpec | None:
        """The part that mails that the job has begun (``-B``), if that is asked for."""
        made, text = entry.made, entry.text
        if made is None or text is None or not (text.report_mail and self._mail):
            return None
        if not text.notify_start and "start" not in text.notify.split():
            return None
        if entry.begun or entry.order.start.place:
            return None
        entry.begun = True
        head = report.so_far(text, messages.summary_so_far(entry, self._host), "started", now)
        return report.mail(entry.uid + BEGUN, entry.order, made, self._mail, (head, "", ""))

    def suspended(self, entry: Entry, now: float) -> PartSpec | None:
        """The part that mails that the job was suspended (``-notify suspend``), each time, if that is asked for."""
        made, text = entry.made, entry.text
        if made is None or text is None or not (text.report_mail and self._mail):
            return None
        if "suspend" not in text.notify.split() or entry.order.start.place:
            return None
        head = report.so_far(text, messages.summary_so_far(entry, self._host), "suspended", now)
        uid = f"{entry.uid}.suspended{len(entry.mailed)}{MAILER}"
        entry.mailed.add(uid)
        return report.mail(uid, entry.order, made, self._mail, (head, "", ""))

    def command(self, entry: Entry, command: str, now: float) -> PartSpec | None:
        """The part that runs a warning command, or one of the queue's JOB_CONTROLS; another one may still run."""
        made = entry.made
        if made is None:
            return None
        env = environ.own(made.text, entry.key, entry.order.start, ("", ""))
        pids = " ".join(str(task.pid) for task in entry.tasks)
        env |= {"LSB_JOBPIDS": pids, "LSB_JOBPGIDS": pids}
        env = {name: value for name, value in env.items() if value}
        # the time tells it from those of before a restart of the agent
        uid = f"{entry.uid}.{int(now)}.{len(entry.mailed)}{WARNING}"
        entry.mailed.add(uid)
        return report.command_part(uid, entry.order, made, "warning", entry.folder(), command, env)

    def _mails(self, entry: Entry) -> bool:
        """The report goes by mail when that is asked for (``-N``), or when there is no file that it could go to."""
        text = entry.text
        if text is None or not text.report_mail or not self._mail or messages.why_again(entry):
            return False
        if not self._settings.lsb_job_report_mail or environ.given(text).get("LSB_JOB_REPORT_MAIL", "").lower() in NO:
            return False
        if text.notify and entry.end is not None:
            return text.notify_end or ("exit" if entry.end.status else "done") in text.notify.split()
        return text.notify_end or not entry.where.output

"""The part that mails the report of a job."""

from __future__ import annotations

import sys

from agent.launch import report
from agent.launch.build import Compiled
from agent.launch.site import Site, User
from proto import agent_pb2 as pb
from proto.daemon import mailing, smtp


def test_the_part_that_mails() -> None:
    site = Site("h1", "/run/lava", "/spool", "/etc/lava", {"LSB_MAILSERVER": "SMTP:mail:25"}, root=True, own_user="root")
    program = mailing.mailer(site.conf)
    assert program == "smtp:mail:25"
    text = pb.JobText(user="ann", report_mail="ann", admins=["boss"], command="true")
    made = Compiled(text, User("ann", 1000, 1000, (1000,), "/home/ann", "/bin/sh", "staff"), site)
    part = report.mail("u.mail", pb.Order(key=1), made, program, ("Subject: x\n", "", ""))
    assert part.argv is not None
    assert part.argv[-6:] == (sys.executable, "-I", smtp.__file__, "mail:25", "boss", "ann")

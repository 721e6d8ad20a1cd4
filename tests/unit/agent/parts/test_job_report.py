"""Parts that the agent adds for a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.core.part import Part, Stage
from agent.launch.build import Compiled
from agent.launch.outputs import OutputPaths
from agent.launch.site import Site, User
from agent.parts import report_messages as messages
from agent.parts.entry import Entry, adopted
from agent.parts.job_report import JobReports, is_own, owner_of
from agent.parts.spool import Saved
from agent.starter.process import account
from agent.starter.protocol.orders import Append
from agent.starter.protocol.reports import FirstFailure
from config.model.site_params import SiteParams
from proto import agent_pb2 as pb

USER = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/sh", "users")


def test_that_a_job_has_begun_is_mailed_once_whatever_becomes_of_the_agent(tmp_path: Path) -> None:
    """One that ends at once is told of with its end; one that ran before a restart of the agent was told of then."""
    mailer = tmp_path / "mail"
    mailer.touch(0o755)
    site = Site("h", "/run", "/spool", "/conf", {"LSB_MAILPROG": str(mailer)})
    text = pb.JobText(id=1, job=1, user="alice", command="true", cwd="/tmp", notify_start=True, report_mail="alice")
    order = pb.Order(key=1, attempt=1, uid="u", start=pb.Start(hosts=[pb.HostSlots(host="h", slots=1)]))
    for stage, told in ((Stage.PREPARED, True), (Stage.RUNNING, False)):
        saved = Saved(order.SerializeToString(), text.SerializeToString(), USER, 0.0, Part("u", 1, 1, stage=stage))
        (entry,) = adopted({"u": saved}, site, 100.0)
        made = JobReports(site)
        assert [made.begun(entry, 100.0) is not None for _ in range(2)] == [told, False]


def test_each_control_command_is_a_part_of_its_own() -> None:
    """The starter runs a part once: what resumes a job did not run at all while what had suspended it still ran."""
    site = Site("h", "/run", "/spool", "/conf", {})
    text = pb.JobText(id=1, job=1, user="alice", command="true", cwd="/tmp")
    order = pb.Order(key=1, attempt=1, uid="u", start=pb.Start(hosts=[pb.HostSlots(host="h", slots=1)]))
    entry = Entry(Part("u", 1, 1, stage=Stage.RUNNING), order, Compiled(text, USER, site), OutputPaths(), 0.0)
    made = JobReports(site)
    parts = [made.command(entry, line, 100.0) for line in ("suspend", "resume")]
    entry.mailed.clear()  # after a restart of the agent
    parts.append(made.command(entry, "suspend", 101.0))
    uids = [part.uid for part in parts if part is not None]
    assert len(set(uids)) == 3
    assert all(is_own(uid) and owner_of(uid) == "u" for uid in uids)


def ended(folder: Path, status: int = 0, output: str = "", place: int = 0, **text: Any) -> Entry:
    """A part that has ended, on the host of this place in its job."""
    order = pb.Order(key=1, attempt=1, uid="u", start=pb.Start(hosts=[pb.HostSlots(host="h", slots=1)] * 2, place=place))
    asked = pb.JobText(id=1, job=1, user="alice", command="true", cwd="/tmp", **({"report_mail": "alice"} | text))
    where = OutputPaths(output=output)
    entry = Entry(Part("u", 1, 1, stage=Stage.GONE), order, Compiled(asked, USER, mailing(folder)), where, 0.0)
    entry.end = account.end_of([account.Task(-1, 77)], status, 1.0, False, account.Used())
    return entry


def mailing(folder: Path, settings: SiteParams = SiteParams()) -> Site:  # noqa: B008
    """A host whose program that mails is there."""
    mailer = folder / "mail"
    mailer.touch(0o755)
    return Site("h", "/run", "/spool", "/conf", {"LSB_MAILPROG": str(mailer)}, settings=settings)


@pytest.mark.parametrize(
    ("text", "output", "status", "mailed"),
    [
        ({}, "", 0, True),
        ({}, "/home/alice/out", 0, False),
        ({"notify_end": True}, "/home/alice/out", 0, True),
        ({"notify": "exit"}, "", 0, False),
        ({"notify": "exit"}, "", 256, True),
        ({"notify": "start done"}, "/home/alice/out", 0, True),
        ({"notify": "start done"}, "/home/alice/out", 256, False),
        ({"notify": "exit", "notify_end": True}, "/home/alice/out", 0, True),
        ({"report_mail": ""}, "", 0, False),
        ({"env": {"LSB_JOB_REPORT_MAIL": "N"}}, "", 0, False),
    ],
)
def test_whose_report_is_mailed(tmp_path: Path, text: dict[str, Any], output: str, status: int, mailed: bool) -> None:
    """bsub -N, -notify and -o, in this order, and what the user and the site say of all mails."""
    entry = ended(tmp_path, status, output, **text)
    file, mail = JobReports(mailing(tmp_path)).orders(entry, 100.0)
    assert (mail is not None) is mailed
    assert (file is not None) is (bool(output) and not mailed)
    assert JobReports(mailing(tmp_path, SiteParams(lsb_job_report_mail=False))).orders(entry, 100.0)[1] is None
    assert JobReports(Site("h", "/run", "/spool", "/conf", {"LSB_MAILPROG": "/none"})).orders(entry, 100.0)[1] is None


def test_a_report_is_written_once_by_the_first_host_of_a_job_that_the_master_knows(tmp_path: Path) -> None:
    made = JobReports(mailing(tmp_path))
    for output in ("", "/home/alice/out"):
        assert made.orders(ended(tmp_path, output=output), 100.0) != (None, None)
        assert made.orders(ended(tmp_path, output=output, place=1), 100.0) == (None, None)
        entry = ended(tmp_path, output=output)
        entry.orphan = True
        assert made.orders(entry, 100.0) == (None, None)


@pytest.mark.parametrize(
    ("rank", "lost", "dropped", "told"),
    [
        (1, "", messages.ENDED, ("Exited with exit code 7.", "Rank 1: rank 1 ended with exit code 7 on h2.")),
        (1, "host h2 was lost", messages.ENDED, ("Job <1> was interrupted", "the master ended this attempt")),
        (1, "", "another attempt of the job is here", ("Job <1> was interrupted", "another attempt of the job is here")),
        (-1, "", messages.ENDED, ("Job <1> was interrupted", "the master ended this attempt")),
        (-1, "", "", ("Job <1> was interrupted", "It is to be run again")),
    ],
)
def test_a_rerunnable_job_of_which_a_rank_failed_elsewhere_has_its_report(
    tmp_path: Path, rank: int, lost: str, dropped: str, told: tuple[str, str]
) -> None:
    """The master hears of that rank and orders the end of all others, as it does when a host is lost and the job runs again."""
    entry = ended(tmp_path, 7 << 8, "/home/alice/out", leased=True)
    assert entry.end is not None
    entry.end = entry.end._replace(first=FirstFailure(rank, 7 << 8, "rank 1 ended with exit code 7 on h2"))
    entry.dropped, entry.ended_for = dropped, pb.Kill(why=lost)
    file, _ = JobReports(Site("h", "/run", "/spool", "/conf", {})).orders(entry, 100.0)
    assert isinstance(file, Append)
    assert [line in str(file) for line in told] == [True, True], file


def test_a_suspension_is_mailed_each_time_to_who_asked_for_it(tmp_path: Path) -> None:
    made = JobReports(mailing(tmp_path))
    entry = ended(tmp_path, notify="suspend")
    mails = [made.suspended(entry, at) for at in (100.0, 101.0)]
    assert len({mail.uid for mail in mails if mail is not None}) == 2
    for other in (ended(tmp_path), ended(tmp_path, notify="suspend", place=1), ended(tmp_path, notify="suspend", report_mail="")):
        assert made.suspended(other, 100.0) is None

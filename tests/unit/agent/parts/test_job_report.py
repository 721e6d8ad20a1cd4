"""Parts that the agent adds for a job."""

from __future__ import annotations

from pathlib import Path

from agent.core.part import Part, Stage
from agent.launch.build import Compiled
from agent.launch.outputs import OutputPaths
from agent.launch.site import Site, User
from agent.parts.entry import Entry, adopted
from agent.parts.job_report import JobReports, is_own, owner_of
from agent.parts.spool import Saved
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

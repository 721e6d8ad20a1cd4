"""Parts that the agent adds for a job."""

from __future__ import annotations

from agent.core.part import Part, Stage
from agent.launch.build import Compiled
from agent.launch.outputs import OutputPaths
from agent.launch.site import Site, User
from agent.parts.entry import Entry
from agent.parts.job_report import JobReports, is_own, owner_of
from proto import agent_pb2 as pb

USER = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/sh", "users")


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

"""The page of variables: all that the code gives to jobs, and none that it does not know."""

from __future__ import annotations

import re
from pathlib import Path

from agent.launch import environ, launchers
from agent.launch.site import Site, User
from docs.generate import variables
from proto import agent_pb2 as pb

ROOT = Path(__file__).parents[4]
KEY = re.compile(r"\"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\":|env\[\"([A-Z0-9_]+)\"\]")
USUAL = {"PATH", "HOME", "SHELL", "SCRATCH"}


def sources(*folders: str) -> str:
    return "".join(path.read_text() for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


def test_each_variable_that_a_job_gets_is_named(tmp_path: Path) -> None:
    known = {*variables.names()}
    made = {one or other for one, other in KEY.findall(sources("agent/launch", "agent/parts", "agent/starter/mpi"))}
    made = {name for name in made if not name.startswith("TERM_")}
    assert {"LSB_JOBID", "LSB_RESIZE_NAME", "LAVA_SCRATCH", "PMI_RANK"} <= made
    assert made - known - USUAL == set()


def test_what_the_environment_of_a_job_has_is_named() -> None:
    text = pb.JobText(command="true", cwd="/", app="a", group="/g", output_dir="o", resreq="r", effective_resreq="r", array_end=3)
    text.requeue_exit_values, text.checkpoint_folder, text.checkpoint_period = "1", "/c", 60
    folders = {"LSF_BINDIR": "/b", "LSF_LIBDIR": "/l", "LSF_SERVERDIR": "/s", "LSF_LOGDIR": "/log"}
    site, user = Site("h", "/run", "/spool", "/conf", folders), User("ann", 1000, 1000, (), "/home/ann", "/bin/sh", "staff")
    env = environ.shared(text, user, site) | launchers.shared(site, 1000, pb.JobText(launch="mpich"))
    env |= environ.own(text, 7, pb.Start(token="t", restart=1, hosts=[pb.HostSlots(host="h", slots=2)]), ("f", "g"))
    env |= environ.checkpoint("/c", pb.Start(restart=1), "USR1")
    assert len(env) > 40
    assert env.keys() - {*variables.names()} - USUAL == set()


def test_no_name_is_one_that_the_code_does_not_know() -> None:
    text = sources("agent", "cli", "client/lava_client", "proto") + (ROOT / "cli/native/front.c").read_text()
    patterns = ("LAVA_PEER_", "LAVA_COUNT_", "LSB_BHOSTS_", "LSB_BQUEUES_", "LSB_BUSERS_", "VK_TASK")
    assert [name for name in variables.names() if name not in text and not name.startswith(patterns)] == []

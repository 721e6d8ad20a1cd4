"""A job on several hosts whose checkpoints are on their own disks: what each host's part of it has, and what is run before it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from agent.launch import build, outputs
from agent.launch.hostfiles import HostFiles
from agent.starter.part.task_start import ABORT, LATE, why_setup_failed
from agent.starter.process.spec import Spec
from agent.starter.protocol.part import CheckpointFolder, PartSpec
from proto import agent_pb2 as pb
from tests.unit.agent.launch.test_elements import ALICE, site

HOSTS = [pb.HostSlots(host="h1", slots=2), pb.HostSlots(host="h2", slots=2)]


def part_of(folder: Path, place: int, again: bool = False, **more: object) -> tuple[PartSpec, dict[str, str]]:
    """The part at this place, and the variables that are its own."""
    given: dict[str, object] = {"checkpoint_folder": "/own", "checkpoint_stage": "/all", "checkpoint_method": "app"}
    given |= {"pre_exec": "true # job", "host_pre_exec": ["true # host"], "submitted": 5.0, "cluster": "c"}
    text = pb.JobText(id=1, job=7, command="x", cwd="/w", limits=pb.Limits(core=-1), **(given | more))  # type: ignore[arg-type]
    start = pb.Start(hosts=HOSTS, place=place, restart=3 if again else -1, restart_count=int(again), two_phase=True)
    order = pb.Order(key=7, attempt=1 + again, uid="u", start=start)
    here = site(str(folder))
    made = build.Compiled(text, ALICE, here)
    where = outputs.output_paths(text, 7, ALICE, here)
    template, part = build.part(order, made, where, here, HostFiles(str(folder)), "", None)
    return part, {**template.env, **part.env}


@pytest.mark.parametrize("place", [0, 1])
def test_each_host_has_its_own_folder_by_its_place(tmp_path: Path, place: int) -> None:
    part, env = part_of(tmp_path, place)
    assert (env["LSB_CHKPNT_DIR"], env["LAVA_CKPT_DIR"], env["LAVA_CKPT_PART"]) == (f"/own/7/part-{place}",) * 2 + (str(place),)
    assert part.checkpoint == CheckpointFolder("/own/7", stage="/all/alice/7", part=f"part-{place}")
    assert "fetch" not in (part.pre_exec or ""), "it begins"


@pytest.mark.parametrize("place", [0, 1])
def test_each_host_brings_its_part_before_a_restart(tmp_path: Path, place: int) -> None:
    part, _ = part_of(tmp_path, place, again=True)
    assert part.pre_exec is not None
    words = shlex.split(part.pre_exec, comments=True)
    asked = json.loads(words[words.index("fetch") + 1])
    found = {"folder": f"/own/7/part-{place}", "stage": "/all/alice/7", "place": place, "slots": [2, 2], "attempt": "u"}
    assert asked.items() >= found.items()
    assert ("true # job" in part.pre_exec) == (place == 0)
    assert "true # host" in part.pre_exec


def test_in_a_shared_folder_there_are_no_parts(tmp_path: Path) -> None:
    for place in (0, 1):
        part, env = part_of(tmp_path, place, again=True, checkpoint_stage="")
        assert env["LSB_CHKPNT_DIR"] == "/own/7"
        assert "LAVA_CKPT_PART" not in env
        assert (part.checkpoint is None) == (place == 1)


def test_a_program_of_the_site_cannot_write_parts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^-k: stage: a job on several hosts writes its checkpoints itself \(method=app\)$"):
        part_of(tmp_path, 0, checkpoint_method="mine")


def test_other_hosts_or_slots_end_the_job_with_the_reason(tmp_path: Path) -> None:
    spec = Spec.__new__(Spec)
    spec.part = part_of(tmp_path, 0, again=True)[0]
    refused = why_setup_failed(spec, ABORT << 8, "generation 1 is of 2 hosts")
    assert (refused.code, refused.reason) == ("pre_abort", "generation 1 is of 2 hosts")
    assert why_setup_failed(spec, 1 << 8, "it is damaged").code == "restart", "no pre-execution command of the user's has failed"
    assert why_setup_failed(spec, LATE << 8, "it was ended after 5 s").code == "pre_exec"

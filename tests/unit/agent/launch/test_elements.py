"""What the parts of an array's elements have in common, and what each has of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent.launch import build, environ, outputs
from agent.launch.hostfiles import HostFiles
from agent.launch.site import Site, User
from proto import agent_pb2 as pb

ALICE = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/bash", "staff")


def site(folder: str) -> Site:
    return Site("h1", "/run/lava", folder, "/etc/lava", {}, root=True, own_user="root")


@pytest.mark.parametrize(("of_text", "name", "found"), [("a[1-9]", "a", "a[1-9]"), ("", "sleep 5", "sleep 5"), ("a", "b", "b")])
def test_the_name_of_a_job_is_what_the_master_says(of_text: str, name: str, found: str) -> None:
    """Of an array as it was submitted; else as it is now, after bmod too, and of one without a name made of its command."""
    env = environ.of_element(pb.JobText(name=of_text, command="sleep 5;" * 1000), 7, pb.Start(name=name))
    assert env["LSB_JOBNAME"] == found


def test_elements_on_the_same_slots_of_a_host_share_a_template(tmp_path: Path) -> None:
    """Whatever stands in it or in the part, each gets the same variables; one with a GPU, or on other slots, has its own."""
    text = pb.JobText(id=1, job=7, command="x", name="a[1-9]", cwd="/w", limits=pb.Limits(core=-1), array_end=9)
    here, files = site(str(tmp_path)), HostFiles(str(tmp_path))
    made = build.Compiled(text, ALICE, here)

    def described(index: int, **slots: Any) -> tuple[Any, dict[str, str]]:
        start = pb.Start(hosts=[pb.HostSlots(host="h1", **slots)], restart=-1, token=f"t{index}")
        order = pb.Order(key=index << 32 | 7, attempt=1, uid=f"u{index}", start=start)
        template, part = build.part(
            order, made, outputs.OutputPaths("o", kept="/k"), here, files, f"{tmp_path}/u{index}.end", None
        )
        assert part.tasks == build.ONE_TASK
        env = {**template.env, **part.env}
        names = files.of(["h1"] * start.hosts[0].slots)
        assert env.items() >= (environ.shared(text, ALICE, here) | environ.own(text, order.key, start, names)).items()
        assert env["LAVA_TIME_LEFT_FILE"] == f"{tmp_path}/u{index}.end"
        return template, dict(part.env)

    one, own = described(1, slots=1)
    assert described(2, slots=1)[0] is one
    assert "LSB_HOSTS" in one.env
    assert {"LSB_BATCH_JID", "LSB_JOBINDEX", "LAVA_TOKEN"} <= own.keys()
    assert not {"LSB_HOSTS", "LSB_JOBID", "PATH"} & own.keys()
    assert described(3, slots=2)[0].env["LSB_MCPU_HOSTS"] == "h1 2 "
    with_gpu, own = described(4, slots=1, gpus=["GPU-1"])
    assert with_gpu is made.template
    assert own["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert described(5, slots=1)[0] is one


@pytest.mark.parametrize(
    "more", [{}, {"input": "in.%I"}, {"script": "#!/bin/sh\n:"}, {"cwd": "/w/%I"}, {"checkpoint_folder": "c"}]
)
@pytest.mark.parametrize("output", ["/dev/null", "o.%I", ""])
def test_what_does_not_depend_on_the_element_stands_in_its_template(tmp_path: Path, output: str, more: dict[str, Any]) -> None:
    given: dict[str, Any] = {"id": 1, "job": 7, "command": "x", "cwd": "/w", "direct_output": True, "output": output}
    given["limits"] = pb.Limits(core=-1)
    text, here, files = pb.JobText(**(given | more)), site(str(tmp_path)), HostFiles(str(tmp_path))
    made = build.Compiled(text, ALICE, here)
    assert made.is_bare == (not more)
    assert (made.where is not None) == (output == "/dev/null" and "%" not in text.cwd)
    for index in (3, 4):
        order = pb.Order(key=index << 32 | 7, attempt=1, uid=f"u{index}")
        order.start.CopyFrom(pb.Start(hosts=[pb.HostSlots(host="h1", slots=1)], restart=-1))
        where = made.where or outputs.output_paths(text, order.key, ALICE, here)
        template, part = build.part(order, made, where, here, files, "", None)
        env = {**template.env, **part.env}
        assert part.stdout == outputs.output_file(text, where, 1)
        assert env.get("LSB_OUTPUTFILE", "") == where.output
        assert env["LSB_CHKFILENAME"] == f"{tmp_path}/output/alice/0.7.{index}"
        assert part.stdin == (f"in.{index}" if "input" in more else "/dev/null")
        assert part.cwd == (f"/w/{index}" if "cwd" in more else "/w")
        assert (part.jobfile is not None) == ("script" in more)
        assert ("LSB_CHKPNT_DIR" in env) == ("checkpoint_folder" in more)


def test_an_element_without_a_gpu_is_kept_from_those_of_its_host(tmp_path: Path) -> None:
    text = pb.JobText(id=1, job=7, command="x", cwd="/w", limits=pb.Limits(core=-1), enforce_gpu=True)
    here, files = site(str(tmp_path)), HostFiles(str(tmp_path))
    made = build.Compiled(text, ALICE, here)
    assert made.is_bare
    order = pb.Order(key=7, attempt=1, uid="u", start=pb.Start(hosts=[pb.HostSlots(host="h1", slots=1)], restart=-1))
    where = outputs.output_paths(text, 7, ALICE, here)
    assert build.part(order, made, where, here, files, "", None)[1].cgroup is made.template.cgroup
    cgroup = build.part(order, made, where, here, files, "", None, [pb.Gpu(uuid="GPU-1", minor=1)])[1].cgroup
    assert cgroup is not None
    assert [rule.minors for rule in cgroup.devices] == [()]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"script": "#!/bin/sh\n:"},
        {"checkpoint_folder": "c"},
        {"launch": "mpi"},
        {"interactive": "I"},
        {"output_dir": "/o/%J"},
        {"login_shell": "/bin/bash"},
        {"array_end": 9},
    ],
)
@pytest.mark.parametrize("own", [{}, {"command": "y > z"}, {"output": "p"}, {"output": "/dev/null", "error": "e.%J"}])
def test_a_part_of_a_text_like_another_is_what_it_would_be_by_itself(
    tmp_path: Path, own: dict[str, str], more: dict[str, Any]
) -> None:
    given: dict[str, Any] = {"command": "x", "cwd": "/w", "direct_output": True, "output": "/dev/null", "env": {"A": "1"}}
    given["limits"] = pb.Limits(core=-1)
    here, files = site(str(tmp_path)), HostFiles(str(tmp_path))
    known = build.Compiled(pb.JobText(id=1, job=7, name="a", submitted=3.5, **(given | more)), ALICE, here)
    other = pb.JobText(id=2, job=8, name="b", submitted=9.25, description="it", **(given | more | own))
    for slots in (1, 2):
        start = pb.Start(hosts=[pb.HostSlots(host="h1", slots=slots)], restart=-1, name="b", token="t")
        described = []
        for key, made in ((7, known), (8, build.Compiled(other, ALICE, here)), (8, known.like(other))):
            order = pb.Order(key=key, attempt=1, uid="u", start=start)
            where = made.where or outputs.output_paths(made.text, key, ALICE, here)
            template, part = build.part(order, made, where, here, files, "/ends", None)
            described.append(part._replace(env={**template.env, **part.env}))
        assert described[2] == described[1]
        assert described[0].env["LSB_JOBID"] == "7"

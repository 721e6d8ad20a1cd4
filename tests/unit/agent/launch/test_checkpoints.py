"""Which checkpoint method a job has on a host, and what is run for it."""

from __future__ import annotations

import json
import shlex

import pytest

from agent.launch import checkpoints
from agent.launch.site import Site
from config.read.params import settings_of
from proto import agent_pb2 as pb


def site(**conf: str) -> Site:
    return Site("h1", "/run", "/spool", "/conf", conf, settings_of(conf))


@pytest.mark.parametrize(
    ("asked", "env", "conf", "found"),
    [
        ("", "", "", "app"),
        ("", "", "b c", "b"),
        ("", "a", "b", "a"),
        ("auto", "a", "b", "a"),
        ("auto", "", "", "app"),
        ("x", "a", "b", "x"),
        ("default", "a", "b", "app"),
        ("", "default", "b", "app"),
    ],
)
def test_the_job_goes_before_its_environment_and_that_before_the_site(asked: str, env: str, conf: str, found: str) -> None:
    text = pb.JobText(checkpoint_method=asked, env={"LSB_ECHKPNT_METHOD": env})
    assert checkpoints.method(text, site(LSB_ECHKPNT_METHOD=conf)) == found


def test_a_bad_name_is_refused_and_a_job_with_roles_asks_its_program() -> None:
    bad = pb.JobText(env={"LSB_ECHKPNT_METHOD": "../../tmp/x"})
    with pytest.raises(ValueError, match=r"^LSB_ECHKPNT_METHOD: \.\./\.\./tmp/x: Bad checkpoint method$"):
        checkpoints.method(bad, site())
    assert checkpoints.method(pb.JobText(roles=[pb.Role()], env={"LSB_ECHKPNT_METHOD": "x"}), site()) == "app"


def test_what_the_programs_are_told() -> None:
    text = pb.JobText(checkpoint_method="x", checkpoint_folder="ck", cwd="/home/me", checkpoint_keep=5)
    conf = site(LSF_SERVERDIR="/server", LAVA_CHKPNT_TIMEOUT="30", LAVA_CHKPNT_KEEP="3", LSB_ECHKPNT_KEEP_OUTPUT="y")
    what, asked = checkpoints.making(text, conf, 7, 99, True)[-2:]
    assert what == "make"
    assert json.loads(asked) == {
        "folder": "/home/me/ck/7",
        "method": "x",
        "where": "/server",
        "criu": "criu",
        "network": False,
        "timeout": 30,
        "keep_output": True,
        "kept": 5,
        "group": 99,
        "kill": True,
    }
    text.checkpoint_keep = 0
    text.env["LSB_ECHKPNT_METHOD_DIR"] = "/mine"
    told = json.loads(checkpoints.making(text, conf, 7, 99, False)[-1])
    assert (told["kept"], told["where"]) == (3, "/mine")


def test_a_program_that_writes_its_own_checkpoints_is_left_as_it_is() -> None:
    text = pb.JobText(checkpoint_folder="ck", cwd="/home/me")
    assert checkpoints.before(text, site(), 7, True) == ""
    assert checkpoints.wrapped(["a"], text, site(), 7, True) == ("a",)
    text.checkpoint_method = "x"
    assert checkpoints.wrapped(["a"], text, site(), 7, False) == ("a",)
    what, asked, *rest = checkpoints.wrapped(["a", "b"], text, site(), 7, True)[-4:]
    assert (what, json.loads(asked)["folder"], rest) == ("run", "/home/me/ck/7", ["a", "b"])


def test_a_job_of_criu_is_kept_apart_from_its_first_start() -> None:
    text = pb.JobText(checkpoint_folder="ck", cwd="/home/me", checkpoint_method="criu")
    conf = site(LAVA_CRIU="/opt/criu")
    for again in (False, True):
        what, asked, *rest = checkpoints.wrapped(["a", "b"], text, conf, 7, again)[-4:]
        assert (what, rest) == ("run", ["a", "b"])
        told = json.loads(asked)
        assert (told["method"], told["criu"], told["again"]) == ("criu", "/opt/criu", again)


def test_the_ranks_of_an_mpi_job_are_in_one_tree_with_a_network_of_its_own() -> None:
    text = pb.JobText(checkpoint_folder="ck", cwd="/home/me", checkpoint_method="criu", launch="mpi")
    words = checkpoints.wrapped(["a", "b"], text, site(), 7, False, 4)
    assert words[-4:] == ("ranks", "4", "a", "b")
    at = words.index("run")
    assert json.loads(words[at + 1])["network"]
    text.checkpoint_method = "app"
    assert checkpoints.wrapped(["a", "b"], text, site(), 7, True, 4) == ("a", "b")


def test_what_copies_generations_and_brings_them_back() -> None:
    text = pb.JobText(checkpoint_folder="ck", cwd="/home/me", cluster="c", submitted=5.5)
    assert checkpoints.fetching(text, site(), "me", pb.Order(key=7), -1) == ""
    assert checkpoints.stage_folder(text, "me", 7) == ""
    text.checkpoint_stage = "/all"
    what, asked = checkpoints.staging(text, site(LAVA_CHKPNT_KEEP="4"), "me", pb.Order(key=7 + (3 << 32)), 9)[-2:]
    found = {"folder": "/home/me/ck/7.3", "method": "", "stage": "/all/me/7.3", "stamp": "c 5.500000", "kept": 4}
    assert (what, json.loads(asked)) == ("stage", found | {"generation": 9})
    line = shlex.split(checkpoints.fetching(text, site(), "me", pb.Order(key=7), 2))
    assert (line[-2], json.loads(line[-1])["most"]) == ("fetch", 2)
    text.checkpoint_of = "6"
    asked = checkpoints.staging(text, site(), "me", pb.Order(key=7), 9)[-1]
    assert json.loads(asked)["stamp"] == "", "the copies of the job that it goes on with count"

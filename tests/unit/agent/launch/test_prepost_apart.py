"""Commands of queues and hosts around a job as another user: who says so, what runs as whom, and with what."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from agent.launch.build import Compiled
from agent.launch.prepost import apart, sudoers
from agent.launch.site import Site, User
from agent.starter.part.task_start import ABORT
from agent.starter.protocol.part import PartSpec
from agent.starter.protocol.reports import End
from proto import agent_pb2 as pb

ALICE = User("alice", 1000, 1000, (1000,), "/home/alice", "/bin/bash", "staff")
ROOT = User("root", 0, 0, (0,), "/root", "/bin/sh", "root")
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="the file must be root's")


def site(user: User | None = ROOT) -> Site:
    return Site("h1", "/run/lava", "/spool", "/etc/lava", {}, root=True, own_user="root", exec_user=user)


def text(**fields: Any) -> pb.JobText:
    given: dict[str, Any] = {
        "host_pre_exec": ["hostpre"],
        "host_post_exec": ["hostpost"],
        "queue_pre_exec": "queuepre",
        "queue_post_exec": "queuepost",
        "pre_exec": "own pre",
        "post_exec": "own post",
        "queue": "night",
        "user": "alice",
    }
    return pb.JobText(**(given | fields))


def order(place: int = 0) -> pb.Order:
    hosts = [pb.HostSlots(host="h1", slots=2), pb.HostSlots(host="h2", slots=1)]
    return pb.Order(key=7, attempt=2, uid="u", start=pb.Start(hosts=hosts, place=place, name="job", token="secret", restart=-1))


def line(part: PartSpec | None) -> str:
    assert part is not None
    assert part.argv is not None
    return part.argv[2]


def test_without_lsf_sudoers_all_run_as_the_user_in_lsfs_order() -> None:
    made = Compiled(text(), ALICE, site(None))
    assert made.around(0) == (("hostpre", "queuepre", "own pre"), ("own post", "queuepost", "hostpost"))
    assert made.around(1) == (("hostpre",), ("hostpost",))
    assert made.template.post_always
    assert apart.before("u.pre", order(), made, site(None)) is None
    assert not apart.is_needed(order(), made)


def test_with_it_only_the_jobs_own_run_as_the_user() -> None:
    made = Compiled(text(), ALICE, site())
    assert made.around(0) == (("own pre",), ("own post",))
    assert made.around(1) == ((), ())
    assert (made.template.pre_exec, made.template.post_exec, made.template.post_always) == ("own pre", "own post", False)
    assert line(apart.before("u.pre", order(), made, site())) == "(\nhostpre\n) && (\nqueuepre\n)"
    assert line(apart.before("u.pre", order(1), made, site())) == "hostpre"
    after = line(apart.after("u.post", order(), made, site(), 256))
    assert after.index("queuepost") < after.index("hostpost")
    assert line(apart.after("u.post", order(1), made, site(), 0)) == "hostpost"


def test_a_job_of_that_user_has_all_of_them_itself() -> None:
    assert Compiled(text(user="root"), ROOT, site()).exec_user is None


@pytest.mark.parametrize("place", [0, 1])
def test_there_may_be_only_some_of_them(place: int) -> None:
    none = {"host_pre_exec": [], "host_post_exec": [], "queue_pre_exec": "", "queue_post_exec": ""}
    assert not apart.is_needed(order(place), Compiled(text(**none), ALICE, site()))
    only_post = Compiled(text(**none | {"host_post_exec": ["x"]}), ALICE, site())
    assert apart.is_needed(order(place), only_post)
    assert apart.before("u.pre", order(place), only_post, site()) is None
    of_queue = Compiled(text(**none | {"queue_pre_exec": "x"}), ALICE, site())
    assert apart.is_needed(order(place), of_queue) is (place == 0)


def test_nothing_that_the_user_chose_is_obeyed_there() -> None:
    env = {"PATH": "/home/alice/bin", "LD_PRELOAD": "/home/alice/x.so", "USER_PREEXEC": "rm", "ENV": "/home/alice/rc", "IFS": "x"}
    given = text(env=env, env_vars={"BASH_ENV": "/x"}, cwd="/home/alice/w", umask=0o777, input="/home/alice/in", nice=5)
    part = apart.before("u.pre", order(), Compiled(given, ALICE, site()), site())
    assert part is not None
    assert part.user == ROOT.account
    assert not {"LD_PRELOAD", "USER_PREEXEC", "ENV", "IFS", "BASH_ENV", "LAVA_TOKEN"} & part.env.keys()
    assert (part.env["PATH"], part.env["HOME"], part.env["USER"]) == (apart.PATH, "/root", "root")
    assert (part.cwd, part.umask, part.stdin, part.input, part.script) == ("/tmp", 0o022, "/dev/null", None, "")
    said = {name: part.env[name] for name in ("LSB_JOBID", "LSFUSER", "LSB_QUEUE", "LSB_JOB_EXECUSER", "LSB_MCPU_HOSTS")}
    assert said == {
        "LSB_JOBID": "7",
        "LSFUSER": "alice",
        "LSB_QUEUE": "night",
        "LSB_JOB_EXECUSER": "alice",
        "LSB_MCPU_HOSTS": "h1 2 h2 1 ",
    }
    after = apart.after("u.post", order(), Compiled(given, ALICE, site()), site(), 1792)
    assert after is not None
    assert after.env["LSB_JOBEXIT_STAT"] == "1792"


def test_time_limits_hold_for_them() -> None:
    part = apart.before("u.pre", order(), Compiled(text(pre_timeout=7), ALICE, site()), site())
    assert line(part).startswith("timeout -s KILL 7 ")


@pytest.mark.parametrize(
    ("wanted", "allowed", "user", "why"),
    [
        ("", None, None, ""),
        ("", ROOT, ROOT, ""),
        ("root", ROOT, ROOT, ""),
        ("alice", ROOT, None, ""),
        ("alice", None, None, ""),
        ("root", None, None, "host h1 runs no commands of queue night as root (PRE_POST_EXEC_USER): its lsf.sudoers does not"),
        ("bob", ROOT, None, "host h1 runs no commands of queue night as bob (PRE_POST_EXEC_USER): its lsf.sudoers does not"),
    ],
)
def test_a_queue_may_name_the_user_of_the_job_or_of_lsf_sudoers(
    wanted: str, allowed: User | None, user: User | None, why: str
) -> None:
    found = sudoers.runs_as(text(pre_post_exec_user=wanted), ALICE, site(allowed))
    assert found[0] == user
    assert found[1].startswith(why)
    assert bool(found[1]) is bool(why)


def test_a_queue_without_commands_needs_no_user() -> None:
    own = pb.JobText(pre_post_exec_user="bob", pre_exec="x", post_exec="y")
    assert sudoers.runs_as(own, ALICE, site()) == (None, "")


@pytest.mark.parametrize(
    ("status", "note", "told"),
    [
        (3 << 8, "", ("pre_exec", "the pre-execution command exited with code 3")),
        (3 << 8, "first\nno scratch\n", ("pre_exec", "the pre-execution command exited with code 3: no scratch")),
        (ABORT << 8, "", ("pre_abort", "the pre-execution command exited with code 99")),
        (9, "", ("pre_exec", "the pre-execution command was killed by signal 9")),
    ],
)
def test_why_a_job_is_not_started(status: int, note: str, told: tuple[str, str]) -> None:
    end = End(status, 0.0, 0.0, 0.0, 0.0, 0, (), None, False, note=note)
    assert apart.why_failed(end, "") == told
    assert apart.why_failed(None, "its shepherd was lost") == ("pre_exec", "its shepherd was lost")


def test_a_file_that_is_not_there_names_nobody(tmp_path: Path) -> None:
    assert sudoers.exec_user(str(tmp_path / "none")) is None


@needs_root
def test_the_file_names_the_user(tmp_path: Path) -> None:
    path = tmp_path / "lsf.sudoers"
    path.write_text('# who\nLSF_STARTUP_USERS="a b"\nLSB_PRE_POST_EXEC_USER=root\n')
    path.chmod(0o600)
    user = sudoers.exec_user(str(path))
    assert user is not None
    assert (user.name, user.uid, user.home) == ("root", 0, pwd.getpwnam("root").pw_dir)
    path.write_text("LSF_STARTUP_USERS=a\n")
    assert sudoers.exec_user(str(path)) is None


@needs_root
def test_a_file_in_a_folder_of_others_is_not_obeyed(tmp_path: Path) -> None:
    """Who may write there could put another in its place."""
    path = tmp_path / "theirs" / "lsf.sudoers"
    path.parent.mkdir()
    path.write_text("LSB_PRE_POST_EXEC_USER=root\n")
    assert sudoers.exec_user(str(path)) is not None
    os.chown(path.parent, 65534, 65534)
    with pytest.raises(sudoers.NotUsable):
        sudoers.exec_user(str(path))


@needs_root
@pytest.mark.parametrize(
    ("content", "mode", "owner", "why"),
    [
        ("LSB_PRE_POST_EXEC_USER=root\n", 0o620, 0, "it must belong to root, and nobody else may write to it"),
        ("LSB_PRE_POST_EXEC_USER=root\n", 0o602, 0, "it must belong to root, and nobody else may write to it"),
        ("LSB_PRE_POST_EXEC_USER=root\n", 0o600, 65534, "it must belong to root, and nobody else may write to it"),
        ("LSB_PRE_POST_EXEC_USER=no-such-user\n", 0o600, 0, "LSB_PRE_POST_EXEC_USER: this host has no user no-such-user"),
    ],
)
def test_a_file_that_is_not_roots_alone_is_not_obeyed(tmp_path: Path, content: str, mode: int, owner: int, why: str) -> None:
    path = tmp_path / "lsf.sudoers"
    path.write_text(content)
    path.chmod(mode)
    os.chown(path, owner, owner)
    with pytest.raises(sudoers.NotUsable) as told:
        sudoers.exec_user(str(path))
    assert str(told.value) == f"{path}: {why}"

"""Whose jobs a host runs, whatever the master has let in, and what it makes of their texts."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent.launch.accounts import Accounts
from agent.launch.build import Compiled
from agent.launch.site import Site, User
from agent.starter_client.starts import Starts, why_not, why_not_started
from config.read.params import settings_of
from proto import agent_pb2 as pb

ROOTS = "host h1 runs no jobs of {}, another name of root"


def site(root: bool = True, **conf: str) -> Site:
    settings = settings_of(conf)
    return Site(host="h1", run_dir="/r", spool="/s", conf_dir="/c", conf=conf, settings=settings, root=root, own_user="lava")


def user(name: str, uid: int) -> User:
    return User(name, uid, 0, (0,), "/", "/bin/sh", "wheel")


def test_roots_jobs_are_for_the_site_to_allow() -> None:
    assert why_not(site(), user("root", 0), "root") == "host h1 runs no jobs of root (LSF_ROOT_USER)"
    assert why_not(site(LSF_ROOT_USER="Y"), user("root", 0), "root") == ""
    assert why_not(site(LSF_ROOT_USER="N"), user("ann", 7), "ann") == ""


@pytest.mark.parametrize(("found", "asked"), [("toor", "toor"), ("root", "ROOT")])
def test_another_name_of_root_is_nobodys(found: str, asked: str) -> None:
    """A host that is not believed about root can still name any user: ``toor`` with number 1234, or another spelling."""
    assert why_not(site(LSF_ROOT_USER="Y"), user(found, 0), asked) == ROOTS.format(asked)


def test_an_agent_that_is_not_root_runs_its_own_jobs_alone() -> None:
    assert why_not(site(root=False), user("lava", 5), "lava") == ""
    assert "cannot become user ann" in why_not(site(root=False), user("ann", 7), "ann")


def taken(starts: Starts, **fields: Any) -> Compiled:
    """What is made of a text."""
    number = starts.high + 1
    order = pb.Order(key=number, attempt=1, uid=f"u{number}", start=pb.Start(sequence=number, hosts=[pb.HostSlots(host="h1")]))
    starts.take(order, pb.JobText(id=number, job=number, user="ann", limits=pb.Limits(core=-1), **fields), None, 0.0)
    [ready] = starts.ready()
    assert ready.made is not None
    return ready.made


@pytest.fixture
def starts(tmp_path: Path) -> Starts:
    here = site()
    accounts = Accounts()
    accounts.keep(user("ann", 7))
    return Starts(replace(here, spool=str(tmp_path)), accounts)


def test_jobs_that_differ_in_their_own_alone_have_one_template(starts: Starts) -> None:
    """The starter is told once what a loop of bsub says each time: environment, folder, limits."""
    one = taken(starts, command="a 1", name="one", cwd="/w", env={"A": "1"}, output="o.1")
    other = taken(starts, command="a 2", name="two", cwd="/w", env={"A": "1"}, output="o.2", submitted=5.5)
    assert other.template is one.template
    assert (one.argv, other.argv) == (("a", "1"), ("a", "2"))
    assert other.text.name == "two"


@pytest.mark.parametrize(
    "more", [{"env": {"A": "2"}}, {"cwd": "/v"}, {"script": "x"}, {"umask": 7}, {"job_starter": "s"}, {"pre_exec": "p"}]
)
def test_jobs_that_differ_otherwise_have_templates_of_their_own(starts: Starts, more: dict[str, Any]) -> None:
    given: dict[str, Any] = {"command": "a", "cwd": "/w", "env": {"A": "1"}}
    assert taken(starts, **(given | more)).template != taken(starts, **given).template


def test_a_command_behind_a_job_starter_is_in_the_template(starts: Starts) -> None:
    """It may have to be written to a file."""
    one, other = (taken(starts, command=command, job_starter="s") for command in ("a", "a > b"))
    assert one.template != other.template


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/s/hostfiles/u"), "spool", "/s/hostfiles/u: No space left on device"),
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "spool", "Too many open files"),
        (OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)), "bad", "File name too long"),
        (ValueError("no such shell"), "bad", "no such shell"),
        (KeyError("x"), "bad", "KeyError: 'x'"),
    ],
)
def test_what_the_agent_could_not_write_is_the_fault_of_the_host_or_of_the_job(error: Exception, code: str, said: str) -> None:
    assert why_not_started("h1", 7, error) == (code, f"host h1 cannot start job 7: {said}")

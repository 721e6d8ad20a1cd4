"""Whose jobs a host runs, whatever the master has let in."""

from __future__ import annotations

import pytest

from agent.launch.site import Site, User
from agent.starter_client.starts import why_not

ROOTS = "host h1 runs no jobs of {}, another name of root"


def site(root: bool = True, **conf: str) -> Site:
    return Site(host="h1", run_dir="/r", spool="/s", conf_dir="/c", conf=conf, root=root, own_user="lava")


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

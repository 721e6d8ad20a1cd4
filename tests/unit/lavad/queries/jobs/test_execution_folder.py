"""The folders of a job as bjobs shows them, also where it ran in another than it was to (``-cwd /nosuch``)."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.core.job.job import Placed, TaskEnd
from tests.support.worlds.query_cluster import QueryCluster, at


def over_at_once(folder: str) -> QueryCluster:
    """A job that was over before its start was reported; ``folder``: what its end says of where it ran."""
    c = QueryCluster()
    c.submit(7)
    c.feed(ev.JobDispatched(at=at("11:34:00"), key=7, attempt=1, uid="u1", parts=(Placed(host="ol1", slots=1),)))
    c.finish(7, "11:34:00", started=at("11:34:00"), cwd=folder, tasks=(TaskEnd(rank=0, pid=5),))
    return c


@pytest.mark.parametrize(("told", "shown"), [("", "/home/alice"), ("/tmp", "/tmp")])
def test_of_a_job_that_was_over_before_its_start_was_reported(told: str, shown: str) -> None:
    c = over_at_once(told)
    assert f"Execution CWD <{shown}>" in c.ask("bjobs", "7", l=True)[0].replace("\n" + 21 * " ", "")
    assert c.ask("bjobs", "7", o="exec_cwd", noheader=True)[0].strip() == shown


def test_of_a_job_that_waits() -> None:
    c = QueryCluster()
    c.submit(7)
    assert c.ask("bjobs", "7", o="exec_cwd", noheader=True)[0].strip() == "-"


def test_in_its_history() -> None:
    assert "Execution CWD </tmp>" in over_at_once("/tmp").ask("bhist", "7", l=True)[0].replace("\n" + 21 * " ", "")


def test_a_folder_whose_name_has_a_line_break_is_one_line() -> None:
    c = QueryCluster()
    c.submit(7, text={"cwd": "/data/new\nline"})
    assert c.ask("bjobs", "7", o="sub_cwd", noheader=True)[0] == "/data/new;line\n"

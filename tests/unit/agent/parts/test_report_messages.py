"""What a report takes from the orders of its job."""

from __future__ import annotations

import errno
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.part import Part, Rules
from agent.launch.outputs import OutputPaths
from agent.launch.site import User
from agent.parts.entry import Entry
from agent.parts.host_monitor import NOT_SEEN
from agent.parts.report_messages import ended, limit_of_job, refused, summary_so_far, use_of, use_of_job
from agent.starter.protocol.reports import End, EndedTask, FirstFailure, HostEnd, HostUse
from proto import agent_pb2 as pb


def _entry(order: pb.Order, text: pb.JobText | None = None) -> Entry:
    made = cast(Any, SimpleNamespace(user=User("ann", 1000, 1000, (), "/", "/bin/sh"), text=text))
    return Entry(Part("u", 7, 1), order, made, OutputPaths(), 0.0)


@pytest.mark.parametrize(("reserved", "asked"), [((100.0, 200.0), 300.0), ((0.0, 0.0), 50.0)])
def test_memory_asked_for_is_that_of_all_hosts_together(reserved: tuple[float, ...], asked: float) -> None:
    """As what was used is; an older master says what the requirement names, for each host."""
    hosts = [pb.HostSlots(host=f"h{at}", slots=1, reserved_mem=amount) for at, amount in enumerate(reserved)]
    order = pb.Order(key=7, attempt=1, uid="u", start=pb.Start(hosts=hosts))
    entry = _entry(order, pb.JobText(requested_mem=50.0))
    assert summary_so_far(entry, "h0").requested_mem == asked


@pytest.mark.parametrize(("sampled", "utime"), [(0.0, 2.0), (2.5, 2.0), (60.0, 59.0)])
def test_cpu_time_that_only_the_samples_saw_is_told(sampled: float, utime: float) -> None:
    """Of tasks that were killed with the part: its end did not wait for them."""
    entry = _entry(pb.Order(key=7, attempt=1, uid="u"))
    entry.end = End(status=9, at=9.0, started=1.0, utime=2.0, stime=1.0, maxrss_kb=0, tasks=(), first=None, lease=False)
    entry.use = use_of(entry.end, NOT_SEEN._replace(cpu=sampled))
    told = ended(entry, "").ended
    assert (told.utime, told.stime) == (utime, 1.0)


@pytest.mark.parametrize(
    ("asked", "where", "real", "told"),
    [
        ("/a", "/a", "/a", ""),
        ("/nosuch", "/nosuch", "/tmp", "/tmp"),
        ("/a/run.%J", "/a/run.7", "/a/run.7", "/a/run.7"),
    ],
)
def test_a_folder_that_is_not_that_of_the_job_is_told_with_its_end(asked: str, where: str, real: str, told: str) -> None:
    """A job that was over before its start was reported was said to have run in the folder that it could not enter."""
    entry = _entry(pb.Order(key=7, attempt=1, uid="u"), pb.JobText(cwd=asked))
    entry.where = OutputPaths(cwd=where)
    entry.end = _end()._replace(cwd=real)
    assert ended(entry, "").ended.cwd == told


@pytest.mark.parametrize(("why", "note"), [("", ""), ("/o: No space left", "its report was not written: /o: No space left")])
def test_a_report_that_was_not_written_is_told_with_the_end(why: str, note: str) -> None:
    entry = _entry(pb.Order(key=7, attempt=1, uid="u"))
    entry.end = _end()
    entry.report_written(why)
    assert ended(entry, "").ended.note == note


def test_what_only_the_samples_saw_on_other_hosts_counts_as_here() -> None:
    others = [HostEnd("h1", 1.0, 0.5, 0, 2, HostUse(cpu=60.0)), HostEnd("h2", 3.0, 0.0, 0, 2, HostUse(cpu=1.0))]
    assert use_of_job(use_of(_end(), NOT_SEEN), others).cpu == pytest.approx(2.0 + 1.0 + 60.0 + 3.0)


def _end(first: FirstFailure | None = None, *others: HostEnd) -> End:
    return End(9, 9.0, 1.0, 2.0, 1.0, 0, (), first, False, others=others)


_SEEN = HostEnd("h1", 0.0, 0.0, 0, 2, HostUse(limit="TERM_MEMLIMIT"))
_BY_KERNEL = HostEnd("h1", 0.0, 0.0, 100_000, 2, None)
_RANK = FirstFailure(3, 9, "rank 3 was killed by signal 9 on h1")
_HOST = FirstFailure(-1, 9, "the part on h1 was killed")


@pytest.mark.parametrize(
    ("end", "limit"),
    [
        (_end(_RANK, _SEEN._replace(status=9)), "TERM_MEMLIMIT"),
        (_end(_HOST, _SEEN), "TERM_MEMLIMIT"),
        (_end(_RANK, _BY_KERNEL._replace(status=9)), "TERM_MEMLIMIT"),
        (_end(_RANK, _BY_KERNEL), ""),  # of an older starter
        (_end(_RANK, _SEEN, _BY_KERNEL._replace(host="h2", status=9, mem=5)), ""),
    ],
)
def test_limit_of_another_host_is_that_of_the_job(end: End, limit: str) -> None:
    entry = _entry(pb.Order(key=7, attempt=1, uid="u"))
    rules = Rules(mem=102_400, enforce_memory=True)
    entry.part = Part("u", 7, 1, rules)
    assert limit_of_job(entry, end) == limit
    entry.part = Part("u", 7, 1, rules, killing=True)  # the master heard of that host's end first
    assert limit_of_job(entry, end) == limit
    entry.part = Part("u", 7, 1, rules, killing=True, reason="TERM_OWNER")
    assert limit_of_job(entry, end) == ""


def test_rank_of_this_host_that_failed_first_has_no_limit_of_another_one() -> None:
    entry = _entry(pb.Order(key=7, attempt=1, uid="u"))
    end = _end(_RANK, _SEEN)._replace(tasks=(EndedTask(3, 5, 9, 0.0, 0.0, 0, 9.0),))
    assert limit_of_job(entry, end) == ""


@pytest.mark.parametrize(
    ("path", "why", "code"),
    [
        ("/s/output/ann/7.out", errno.EROFS, "files"),
        ("/s/output/ann/7.out", errno.ENOSPC, "files"),
        ("/s/output/ann/7.out", errno.EACCES, "output"),
        ("/home/ann/out", errno.EROFS, "output"),
    ],
)
def test_a_disk_of_the_host_that_takes_no_output_says_nothing_of_the_job(path: str, why: int, code: str) -> None:
    """lavad tries the job again then; for a file of the user's own two hosts, or the only one, are believed."""
    order = pb.Order(key=7, attempt=1, uid="u")
    entry = Entry(Part("u", 7, 1), order, None, OutputPaths(kept="/s/output/ann/7.out"), 0.0)
    assert refused(entry, "output", f"output file {path}: {os.strerror(why)}").refused.code == code

"""What a report takes from the orders of its job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.part import Part
from agent.launch.outputs import OutputPaths
from agent.launch.site import User
from agent.parts.entry import Entry
from agent.parts.host_monitor import NOT_SEEN
from agent.parts.report_messages import ended, summary_so_far, use_of
from agent.starter.protocol.reports import End
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

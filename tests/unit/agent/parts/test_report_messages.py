"""What a report takes from the orders of its job."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.core.part import Part
from agent.launch.outputs import OutputPaths
from agent.launch.site import User
from agent.parts.entry import Entry
from agent.parts.report_messages import summary_so_far
from proto import agent_pb2 as pb


@pytest.mark.parametrize(("reserved", "asked"), [((100.0, 200.0), 300.0), ((0.0, 0.0), 50.0)])
def test_memory_asked_for_is_that_of_all_hosts_together(reserved: tuple[float, ...], asked: float) -> None:
    """As what was used is; an older master says what the requirement names, for each host."""
    hosts = [pb.HostSlots(host=f"h{at}", slots=1, reserved_mem=amount) for at, amount in enumerate(reserved)]
    order = pb.Order(key=7, attempt=1, uid="u", start=pb.Start(hosts=hosts))
    made = cast(Any, SimpleNamespace(user=User("ann", 1000, 1000, (), "/", "/bin/sh"), text=pb.JobText(requested_mem=50.0)))
    entry = Entry(Part("u", 7, 1), order, made, OutputPaths(), 0.0)
    assert summary_so_far(entry, "h0").requested_mem == asked

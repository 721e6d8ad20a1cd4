"""Timers of parts: bounded by the parts that are here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from agent.core.part import Part, Rules, Stage
from agent.launch.hostfiles import HostFiles
from agent.launch.outputs import OutputPaths
from agent.launch.timeleft import TimeLeft
from agent.parts.control import SPARE_WAKES, PartControl
from agent.parts.entry import Entry
from agent.parts.spool import Spool
from agent.parts.table import PartTable
from proto import agent_pb2 as pb


def test_jobs_with_long_run_limits_that_have_ended_leave_no_timers(tmp_path: Path) -> None:
    table, unused = PartTable(), cast(Any, None)
    control = PartControl(unused, table, unused, unused, Spool(str(tmp_path)), unused, unused, TimeLeft(HostFiles(str(tmp_path))))
    one = Part("u", 1, 1, Rules(run=30 * 86_400), Stage.RUNNING, since=1.0)
    for number in range(3 * SPARE_WAKES):
        entry = Entry(replace(one, uid=f"u{number}"), pb.Order(), None, OutputPaths(), 0.0)
        table.add(entry)
        control.set_timer(entry)
        if number:
            table.remove(entry)
        assert len(control._wakes) <= SPARE_WAKES + 4
    assert "u0" in {uid for _, uid in control._wakes}

"""Timers of parts: bounded by the parts that are here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from msgspec.structs import replace

from agent.core import decide
from agent.core.part import Part, Rules, Stage
from agent.launch.hostfiles import HostFiles
from agent.launch.outputs import OutputPaths
from agent.launch.timeleft import TimeLeft
from agent.parts.control import SPARE_WAKES, PartControl
from agent.parts.entry import Entry
from agent.parts.spool import Spool
from agent.parts.table import PartTable
from agent.starter.protocol.orders import Note
from agent.starter.protocol.reports import HostUse
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


class _Starter:
    """What the starter was told, in order."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def put(self, order: object) -> None:
        self.told.append(order)


def test_first_host_hears_of_a_limit_before_what_ends_for_it(tmp_path: Path) -> None:
    """Its shepherd tells the first host when the tasks have ended: a note behind the signals could come too late."""
    table, unused, starter = PartTable(), cast(Any, None), _Starter()
    monitor = cast(Any, SimpleNamespace(peaks=lambda uid: HostUse(mem=400_000)))
    time_left = TimeLeft(HostFiles(str(tmp_path)))
    control = PartControl(unused, table, unused, cast(Any, starter), Spool(str(tmp_path)), monitor, unused, time_left)
    part = Part("u", 1, 1, Rules(mem=102_400, enforce_memory=True), Stage.RUNNING, since=1.0)
    made = cast(Any, SimpleNamespace(text=pb.JobText(launch="mpi")))
    entry = Entry(part, pb.Order(start=pb.Start(place=1)), made, OutputPaths(), 0.0)
    control.apply(entry, *decide.used(part, 5.0, 1.0, 400_000, 0, 2))
    assert starter.told[0] == Note("u", HostUse(mem=400_000, limit="TERM_MEMLIMIT"))
    assert len(starter.told) > 1

"""What a starter makes of a shepherd, a user's process, that says what shepherds do not say."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from agent.starter.process import account
from agent.starter.protocol.part import CgroupLimits
from agent.starter.protocol.reports import EncodedReport, Ended, FromStarter, PartReport, PartState
from agent.starter.supervisor.journal import Journal
from agent.starter.supervisor.parts import Part
from agent.starter.supervisor.pool import Home
from agent.starter.supervisor.shepherd_handle import ShepherdHandle, ShepherdKey
from agent.starter.supervisor.supervisor import Supervisor
from agent.starter.system.cgroup import Groups, Places, Removals
from agent.starter.system.watch import Watch
from agent.starter.wire.frames import pack
from agent.starter.wire.pipe import FramePipe
from tests.support.wait import wait_until


def test_many_that_are_killed_at_once_have_more_time_to_confirm_it(tmp_path: Path) -> None:
    """Each has to be woken up for it, on a machine that may have more to do."""
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 0, ())
    parts = {str(number): Part(str(number), number, 1, number) for number in range(1, 401)}
    watch = Watch()
    supervisor = Supervisor(Home("h1"), journal, watch, parts, lambda _: None, lambda _: None)
    for number in range(1, 401):
        handle = ShepherdHandle(number, ShepherdKey(0, 0, (), False))
        handle.busy = str(number)
        supervisor.pool.shepherds[number] = handle
    begin = time.monotonic()
    supervisor.kill(parts["1"])
    for part in list(parts.values())[1:200]:
        supervisor.kill(part)
    supervisor.kill(parts["200"], among=200)
    due = [at - begin for at, *_ in sorted(supervisor._timers, key=lambda timer: timer[1])]
    assert due[0] >= 2
    assert due[-1] - due[0] > 3
    assert due[-2] - due[0] > 3
    supervisor.kill(parts["400"], among=100_000)
    assert max(supervisor._timers)[0] < time.monotonic() + 31


NONSENSE: list[dict[str, Any]] = [
    {"uid": "a", "is": "ended"},
    {"uid": "a", "is": "started", "tasks": 7},
    {"uid": "a", "is": "started", "tasks": [{}]},
    {"uid": "a", "is": "gone", "post": "x"},
    {"uid": "a", "is": "task_ended"},
    {"id": [], "is": "wrote"},
]


@pytest.mark.parametrize("said", NONSENSE, ids=str)
def test_it_loses_its_part_and_nobody_else_anything(tmp_path: Path, said: dict[str, Any]) -> None:
    reports: list[PartReport | EncodedReport] = []
    answers: list[FromStarter] = []
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 0, ())
    parts = {"a": Part("a", 1, 1, 1), "b": Part("b", 2, 1, 2)}
    watch = Watch()
    supervisor = Supervisor(Home("h1"), journal, watch, parts, reports.append, answers.append)
    ours, theirs = socket.socketpair()
    handle = ShepherdHandle(1, ShepherdKey(0, 0, (), False))
    with subprocess.Popen(["sleep", "1000"]) as shepherd, theirs:
        handle.pid, handle.pipe, handle.busy = shepherd.pid, FramePipe(ours, watch), "a"
        supervisor.pool.shepherds[1] = supervisor.pool.by_pid[shepherd.pid] = handle
        watch.add(ours.fileno(), lambda _: supervisor._read(handle))
        theirs.sendall(pack(said))
        watch.wait(5.0)
        assert handle.doomed
        wait_until(lambda: shepherd.poll() is not None, 30, "the shepherd's end")
    assert parts["b"].state is PartState.PREPARING
    assert not [report for report in reports if isinstance(report, bytes) or report.uid == "b"]


def test_what_ran_out_of_memory_is_known_to_an_agent_that_was_away(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    journal.rewrite("boot", 0, ())
    parts = {"a": Part("a", 1, 1, 1)}
    journal.add(1, list(parts.values()))
    supervisor = Supervisor(Home("h1"), journal, Watch(), parts, lambda _: None, lambda _: None)
    handle = ShepherdHandle(1, ShepherdKey(0, 0, (), False))
    handle.busy, supervisor.pool.shepherds[1] = "a", handle
    group = tmp_path / "groups" / "lava-a"
    group.mkdir(parents=True)
    handle.groups = Groups(Places({"memory": str(group.parent)}, True), 1, Removals())
    handle.groups.begin("a", CgroupLimits(memory_bytes=1 << 20))
    (group / "memory.events").write_text("oom 1\noom_kill 1\n")
    supervisor._on_report(handle, Ended("a", account.end_of([], 9, 1.0, False, account.Used())))
    assert parts["a"].status().oom
    journal.sync()
    assert Journal(str(tmp_path)).load().parts["a"].oom
    journal.rewrite("boot", 1, parts.values())
    assert Journal(str(tmp_path)).load().parts["a"].oom

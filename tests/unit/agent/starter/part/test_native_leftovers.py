"""What a task leaves behind, by native code and by Python: it is asked to end, then killed, and only then is its part gone."""

from __future__ import annotations

import os
import signal

import pytest

from agent.starter.system import shm
from agent.starter.wire.frames import pack
from tests.support.daemons.shepherds import Shepherd, below

IGNORES = "trap '' TERM; sleep 1000 & "
LEAVES = {
    "ends": "sleep 1000 & echo $!",
    "is killed": f'(setsid sh -c "{IGNORES} wait" & echo $!)',
    "fails": "sleep 1000 & echo $!; exit 3",
}


@pytest.mark.parametrize("program", LEAVES.values(), ids=LEAVES)
def test_processes_that_a_task_leaves_are_asked_to_end_and_killed(both: tuple[Shepherd, Shepherd], program: str) -> None:
    told = []
    for one in both:
        noted = len(one.noted())
        one.send(one.template(argv=["/bin/sh", "-c", program], grace=0.1), one.part())
        told.append([one.report("ended"), one.report("gone")])
        assert "gone" not in told[-1][0]
        assert not os.path.exists(f"/proc/{int(one.out.read_text())}")
        assert below(one.process.pid) == []
        assert len(one.noted()) == noted or one is not both[0]
        assert one.run(one.template(), one.part())["gone"]
    assert [set(report) for report in told[0]] == [set(report) for report in told[1]]
    assert told[0][0]["end"]["status"] == told[1][0]["end"]["status"]


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGKILL])
def test_what_a_task_has_left_hears_signals_and_is_killed_by_an_order(both: tuple[Shepherd, Shepherd], number: int) -> None:
    left = "trap '' TERM; trap exit USR1; echo on; while :; do sleep 0.01; done"
    program = f'setsid sh -c "{left}" & until grep -q on "$0"; do sleep 0.01; done'
    for one in both:
        noted = len(one.noted())
        one.send(one.template(argv=["/bin/sh", "-c", program, str(one.out)], grace=1000.0), one.part())
        uid = one.report("ended")["uid"]
        order = {"do": "kill"} if number == signal.SIGKILL else {"do": "signal", "sig": int(number), "scope": "groups"}
        one.send(pack({**order, "uids": [uid]}))
        one.report("gone")
        assert below(one.process.pid) == []
        assert len(one.noted()) == noted or one is not both[0]


def test_an_end_that_was_told_is_not_told_again_by_python(native: Shepherd) -> None:
    native.send(native.template(argv=["/bin/sh", "-c", "setsid sleep 1000 & exit 3"], grace=0.0), native.part())
    uid = native.report("ended")["uid"]
    assert native.next() == {"is": "gone", "uid": uid}
    file = f"/dev/shm/{shm.NAMES[0]}{os.getpid()}"
    program = f"(trap '' TERM; sleep 1000; :) & echo > {file}; exit 3"
    native.send(native.template(argv=["/bin/sh", "-c", program], grace=0.1), native.part())
    uid = native.report("ended")["uid"]
    assert native.next() == {"is": "gone", "uid": uid}
    assert not os.path.exists(file)
    assert native.noted() == [f"take_over {uid}"]


def test_what_ends_a_moment_after_its_task_is_waited_for(native: Shepherd) -> None:
    native.send(native.template(argv=["/bin/sh", "-c", "(exec true) & :"]))
    assert any(native.run(native.part()).get("gone") for _ in range(100))

"""What is wrong with a GPU, and of what kind it is: that decides whether jobs go on, and who opens it again."""

from __future__ import annotations

import pytest

from agent.devtools import simgpu
from agent.monitor.gpu.errors import HOT_FOR, TOLD_FOR
from agent.monitor.gpu.nvml import REOPEN_EVERY
from agent.monitor.gpu.source import GpuSource
from tests.unit.agent.monitor.gpu.conftest import HOST, Clock, Faults

G1 = simgpu.sim_uuid(HOST, 1)


def ill(gpus: GpuSource) -> tuple[str, str]:
    """What is wrong with GPU 1; nothing is wrong with the others."""
    states = {state.uuid: state for state in gpus.states()}
    assert not any(state.error for uuid, state in states.items() if uuid != G1)
    return states[G1].cause, states[G1].error


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("lost", ("lost", "lost")),
        ("xid79", ("lost", "lost (Xid 79)")),
        ("xid48", ("fault", "Xid 48: double bit ECC error")),
        ("xid48,ecc", ("fault", "Xid 48: double bit ECC error")),
        ("xid119", ("fault", "Xid 119: its system processor does not answer")),
        ("ecc", ("fault", "2 uncorrected ECC errors")),
        ("remapfailed", ("fault", "row remapping failed")),
        ("remap", ("health", "rows of its memory are remapped by the next reset")),
        ("hot", ("", "")),
        ("xid13", ("", "")),
        ("xid158", ("fault", "Xid 158: fatal timeout")),
        ("xid31,xid43,xid45,xid68,xid109,xid154", ("", "")),
    ],
)
def test_each_fault_and_its_cause(gpus: GpuSource, faults: Faults, fault: str, told: tuple[str, str]):
    assert ill(gpus) == ("", "")
    faults({"1": fault})
    assert ill(gpus) == told


def test_one_that_was_lost_is_well_once_it_answers(gpus: GpuSource, faults: Faults, clock: Clock):
    gpus.states()
    faults({"1": "xid79"})
    for _ in range(3):
        assert ill(gpus) == ("lost", "lost (Xid 79)")
        clock.now += REOPEN_EVERY
    faults({})
    clock.now += REOPEN_EVERY
    assert ill(gpus) == ("", "")
    faults({"1": "lost"})
    assert ill(gpus)[0] == "lost"


def test_an_xid_is_told_for_an_hour_also_when_the_driver_was_opened_again(gpus: GpuSource, faults: Faults, clock: Clock):
    gpus.states()
    faults({"1": "xid95"})
    assert ill(gpus)[0] == "fault"
    faults({"driver": "gone"})
    gpus.states()
    clock.now += REOPEN_EVERY
    assert {(state.cause, state.error) for state in gpus.states()} == {("health", "the NVIDIA driver is not loaded")}
    faults({})
    clock.now += REOPEN_EVERY
    assert ill(gpus) == ("fault", "Xid 95: uncontained ECC error")
    clock.now += TOLD_FOR
    assert ill(gpus) == ("", "")


def test_heat_counts_only_when_it_lasts(gpus: GpuSource, faults: Faults, clock: Clock):
    faults({"1": "hot"})
    assert ill(gpus) == ("", "")
    clock.now += HOT_FOR - 1
    assert ill(gpus) == ("", "")
    clock.now += 1
    assert ill(gpus) == ("health", "slowed down by heat")
    faults({})
    assert ill(gpus) == ("", "")
    faults({"1": "hot"})
    assert ill(gpus) == ("", "")


def test_instances_share_what_is_wrong_with_their_gpu(gpus: GpuSource, faults: Faults):
    faults({"mig": "1=1g.10gb,1g.10gb", "1": "ecc"})
    told = {state.uuid: state.cause for state in gpus.states() if state.error}
    assert len(told) == 3
    assert set(told.values()) == {"fault"}

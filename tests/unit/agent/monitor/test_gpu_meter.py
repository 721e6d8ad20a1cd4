"""What parts use of GPUs is summed up from samples: alone, shared, over a restart of the agent, with a driver that goes away."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.monitor.gpu_meter import NO_LOOK, SAVE_EVERY, STALE, GpuLook, GpuMeter, GpuReading, GpuShare, Held

A, B = "GPU-a", "GPU-b"


def look(shares: dict[str, dict[str, GpuShare]] | None = None, **readings: GpuReading) -> GpuLook:
    return GpuLook({one.uuid: one for one in readings.values()}, shares or {})


def reading(uuid: str = A, util: int = 50, energy: float = -1.0, power: float = -1.0, **more: float) -> GpuReading:
    return GpuReading(uuid, 3, util, 20, 1000, energy, power, more.get("sent", -1.0), more.get("received", -1.0))


def test_use_is_weighed_by_time_and_the_first_sample_counts_from_the_start() -> None:
    meter = GpuMeter()
    held = {"u": Held((A,), 100.0)}
    meter.enter(102.0, held, look(a=reading(util=80)))
    meter.enter(112.0, held, look(a=reading(util=3)))
    (use,) = meter.enter(113.0, held, look(a=reading(util=100)))["u"]
    assert (use.held, use.known, use.idle) == (13.0, 13.0, 10.0)
    assert use.used == pytest.approx(2 * 0.8 + 10 * 0.03 + 1)
    assert (use.index, use.util, use.max_util, use.min_util, use.mem, use.max_mem) == (3, 100, 100, 3, 1000, 1000)
    (end,) = meter.close("u", held["u"], 115.0)
    assert [end.held, end.used, end.util, end.mem, end.max_mem] == [15.0, pytest.approx(4.9), -1, 0, 1000]
    assert end.mem_used == pytest.approx(0.2 * end.known), "its memory was in use until the end, too"
    assert not meter.sums


def test_a_clock_that_is_set_back_does_not_stop_the_sums() -> None:
    meter = GpuMeter()
    held = {"u": Held((A,), 10_000.0)}
    meter.enter(10_010.0, held, look(a=reading(util=50)))
    meter.enter(6_400.0, held, look(a=reading(util=50)))
    (use,) = meter.enter(6_410.0, held, look(a=reading(util=50)))["u"]
    assert (use.held, use.known, use.used) == (20.0, 20.0, 10.0)


def test_energy_is_that_of_the_counter_and_before_the_first_sample_that_of_the_power() -> None:
    meter = GpuMeter()
    held = {"u": Held((A,), 100.0)}
    meter.enter(101.0, held, look(a=reading(energy=5000.0, power=300.0)))
    meter.enter(111.0, held, look(a=reading(energy=7000.0, power=100.0)))
    (use,) = meter.enter(112.0, held, look(a=reading(energy=10.0, power=100.0)))["u"]
    assert use.energy == pytest.approx(300 + 2000 + 100), "a counter that begins again: power x time"
    (end,) = meter.close("u", held["u"], 113.0)
    assert end.energy == pytest.approx(2500)


def test_traffic_is_summed_and_what_a_driver_does_not_tell_is_not_known() -> None:
    meter = GpuMeter()
    held = {"u": Held((A, B), 0.0)}
    found = meter.enter(10.0, held, look(a=reading(sent=5.0, received=7.0), b=GpuReading(B, 4, mem_mb=100)))["u"]
    assert (found[0].pcie_sent, found[0].pcie_received) == (50.0, 70.0)
    assert (found[1].known, found[1].idle, found[1].max_util, found[1].energy, found[1].held) == (0.0, 0.0, -1, -1.0, 10.0)
    assert found[1].max_mem == 100


def test_a_gpu_of_two_parts_is_divided_by_their_processes() -> None:
    meter = GpuMeter()
    held = {"u": Held((A,), 0.0), "v": Held((A,), 0.0)}
    shares = {"u": GpuShare(300, 60, 30), "v": GpuShare(200, 20, 4)}
    both = look({A: shares}, a=reading(util=80, energy=100.0, power=400.0, sent=8.0, received=0.0))
    found = meter.enter(10.0, held, both)
    (u,), (v,) = found["u"], found["v"]
    assert [u.used, v.used] == [pytest.approx(6.0), pytest.approx(2.0)]
    assert [u.energy, v.energy] == [pytest.approx(3000), pytest.approx(1000)]
    assert (u.pcie_sent, v.pcie_sent) == (60.0, 20.0)
    assert (u.max_mem, v.max_mem, u.max_mem_util, v.max_mem_util) == (300, 200, 30, 4)
    found = meter.enter(20.0, held, look(a=reading(util=0, energy=1100.0, power=400.0)))
    assert [found[uid][0].energy for uid in "uv"] == [pytest.approx(3500), pytest.approx(1500)], "none used it: evenly"
    assert [found[uid][0].idle for uid in "uv"] == [10.0, 10.0]


def test_a_gpu_that_does_not_answer_is_held_and_neither_used_nor_idle() -> None:
    meter = GpuMeter()
    held = {"u": Held((A,), 0.0)}
    meter.enter(10.0, held, look(a=reading(util=50, energy=100.0, power=10.0)))
    meter.enter(40.0, held, NO_LOOK)
    (use,) = meter.enter(50.0, held, look(a=reading(util=50, energy=900.0, power=10.0)))["u"]
    assert (use.held, use.known, use.used, use.idle) == (50.0, 20.0, 10.0, 0.0)
    assert use.energy == pytest.approx(200)


def test_a_part_that_was_too_short_for_a_sample_held_its_gpus() -> None:
    (use,) = GpuMeter().close("u", Held((A,), 10.0), 10.5)
    assert (use.uuid, use.held, use.known, use.max_util, use.energy) == (A, 0.5, 0.0, -1, -1.0)


def test_sums_go_on_over_a_restart_of_the_agent(tmp_path: Path) -> None:
    path = str(tmp_path / "gpu_use.json")
    held = {"u": Held((A,), 1000.0), "old": Held((B,), 1000.0)}
    first = GpuMeter(path)
    first.enter(1010.0, held, look(a=reading(util=90, energy=500.0, power=100.0), b=reading(B)))
    first.enter(1010.0 + SAVE_EVERY, held, look(a=reading(util=90, energy=1500.0, power=100.0), b=reading(B)))
    second = GpuMeter(path)
    (use,) = second.enter(1040.0, {"u": held["u"]}, look(a=reading(util=10, energy=3500.0, power=100.0)))["u"]
    assert [use.held, use.used, use.energy] == [40.0, pytest.approx(18 + 2), pytest.approx(1000 + 1000 + 2000)]
    assert set(second.sums) == {"u", "old"}
    second.enter(1041.0 + STALE, {"u": held["u"]}, NO_LOOK)
    assert set(second.sums) == {"u"}
    (tmp_path / "gpu_use.json").write_text('{"u": 1')
    assert GpuMeter(path).sums == {}


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    meter = GpuMeter()
    held = {"u": Held((A,), 100.0)}
    meter.enter(110.0, held, look(a=reading()))
    (use,) = meter.enter(105.0, held, look(a=reading()))["u"]
    assert (use.known, use.used) == (10.0, 5.0)


def test_a_reading_counts_until_it_was_read_and_once() -> None:
    meter = GpuMeter()
    held = {"u": Held((A,), 100.0)}
    early = reading(util=0, energy=50.0, power=70.0)._replace(at=99.0)
    (use,) = meter.enter(101.0, held, look(a=early))["u"]
    assert (use.held, use.known, use.max_util, use.energy) == (1.0, 0.0, -1, -1.0), "it was measured before the part began"
    for now, at, energy in ((106.0, 104.0, 3000.0), (107.0, 104.0, 3000.0), (111.0, 110.0, 5400.0)):
        (use,) = meter.enter(now, held, look(a=reading(util=60, energy=energy, power=400.0)._replace(at=at)))["u"]
    assert (use.held, use.known, use.idle) == (11.0, 10.0, 0.0)
    assert use.energy == pytest.approx(4 * 400 + 2400)
    (end,) = meter.close("u", held["u"], 112.0)
    assert [end.held, end.used, end.energy] == [12.0, pytest.approx(7.2), pytest.approx(4000 + 800)]

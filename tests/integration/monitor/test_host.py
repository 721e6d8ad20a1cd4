"""Facts and load of the host that runs the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent.monitor.facts import facts
from agent.monitor.load import LoadSampler
from config.model.values import LOAD_INDICES
from tests.support.wait import wait_until


def test_facts_are_sane():
    found = facts("192.0.2.7")
    assert 1 <= found.ncpus <= (os.cpu_count() or 1)
    assert found.nprocs >= 1
    assert found.nprocs * found.ncores * found.nthreads <= 2 * (os.cpu_count() or 1)
    assert found.max_mem == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    assert found.max_tmp > 0
    assert found.max_swap >= 0
    assert found.address == "192.0.2.7"
    assert found.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found.type
    assert found.model
    assert not set(found.model) & set(" ()\t")
    assert found.cpu_factor == 1.0
    assert len(found.gpus) == 0


def test_the_site_may_say_how_many_processors():
    assert facts("", ncpus=64).ncpus == 64


def test_load_has_every_index_in_its_unit():
    sampler = LoadSampler()
    first = sampler.sample()
    assert tuple(first) == LOAD_INDICES
    assert all(value >= 0 for value in first.values())
    assert first["ut"] <= 1
    assert first["mem"] <= facts("").max_mem
    assert first["tmp"] <= facts("").max_tmp
    load = os.getloadavg()
    assert first["r1m"] == pytest.approx(load[0], abs=2)
    assert first["r15m"] == pytest.approx(load[2], abs=2)


def test_use_of_the_processor_shows():
    sampler = LoadSampler()

    def burned() -> bool:
        sum(range(100_000))
        return sampler.sample()["ut"] > 0

    wait_until(burned, 30, "ut to rise")


def test_a_tmp_that_is_not_there_is_full(tmp_path: Path):
    assert LoadSampler(str(tmp_path / "none")).sample()["tmp"] == 0

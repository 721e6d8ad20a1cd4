"""The sentence about what a job wastes: the greatest waste first, and none for a short or well chosen job."""

from __future__ import annotations

import pytest

from proto.advice import Use, enough, sentence, size

GB = 1 << 20


NONE_USED = "does the program use GPUs at all? else ask for none"


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (Use(30, 8, 1), ""),
        (
            Use(30, 2, 1, gpus=((90, 90),)),
            "1 GPU asked, 1 idle 100 % of the time: does the program use GPUs at all? else ask for none",
        ),
        (Use(600, 1, 1), ""),
        (Use(600, 8, 4800), ""),
        (Use(600, 8, 660), "it used 1.1 of its 8 slots: ask for -n 2, or let the program use them"),
        (Use(600, 8, 4700, 2 * GB, 16 * GB), "it used 2 GB of the 16 GB of memory that it reserved: 3GB are enough"),
        (Use(600, 1, 600, 100 * 1024, GB / 2), ""),
        (Use(600, 2, 1100, gpus=((600, 0), (600, 580))), "2 GPUs asked, 1 idle 97 % of the time: ask for fewer"),
        (
            Use(600, 2, 100, gpus=((600, 590),)),
            f"1 GPU asked, 1 idle 98 % of the time: {NONE_USED}",
        ),
        (
            Use(600, 8, 2400, hosts=(("a", 4, 2400.0), ("b", 4, 1.0))),
            "1 of 2 hosts did nothing (b): start the program on all (-a mpi, blaunch), or ask for one host",
        ),
        (
            Use(1200, 1, 1200, run_limit=86400, succeeded=True),
            "it ran 20 min of the 1440 min of its run limit: with -W 40 such a job may start earlier",
        ),
        (Use(1200, 1, 1200, run_limit=86400), ""),
        (Use(600, 2, 1100, held=6000), ""),
    ],
)
def test_the_greatest_waste_is_named(use: Use, said: str) -> None:
    assert sentence(use) == said


def test_a_job_that_shrank_is_measured_by_the_slots_that_it_had() -> None:
    assert Use(600, 2, 1100, held=6000).cpu_share == pytest.approx(1100 / 6000)
    assert Use(600, 2, 600).cpu_share == pytest.approx(0.5)


def test_sizes() -> None:
    assert [size(kb) for kb in (0, 500, 100 * 1024, 4.2 * GB, 4 * GB)] == ["0 MB", "1 MB", "100 MB", "4.2 GB", "4 GB"]
    assert [enough(kb) for kb in (1, 100 * 1024, 1.5 * GB, 1.7 * GB, 4.2 * GB)] == ["100MB", "200MB", "2000MB", "3GB", "6GB"]

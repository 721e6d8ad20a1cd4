"""What a finished attempt is charged, and what is left of it later."""

from __future__ import annotations

from math import log

import pytest

from lavad.core.cluster.charge import charged, decayed, mean_decayed
from lavad.core.job.job import Attempt, End, Part
from lavad.core.job.spec import Spec
from lavad.core.lang.states import PartState

HOUR = 3600.0


@pytest.mark.parametrize("hours", [0.5, 1.0, 5.0])
@pytest.mark.parametrize("seconds", [1.0, HOUR, 20 * HOUR])
def test_what_was_used_evenly_fades_as_its_pieces_do(seconds: float, hours: float) -> None:
    """The sum over ten thousand slices, each decayed_sums from its middle to the end."""
    slices = 10_000
    each = seconds / slices
    wanted = sum(decayed(1.0 / slices, seconds - (at + 0.5) * each, hours) for at in range(slices))
    assert mean_decayed(1.0, seconds, hours) == pytest.approx(wanted, rel=1e-3)


def test_nothing_fades_without_hist_hours() -> None:
    assert (decayed(7.0, HOUR, 0.0), mean_decayed(7.0, HOUR, 0.0), decayed(7.0, -5.0, 1.0)) == (7.0, 7.0, 7.0)


def test_an_attempt_is_charged_what_is_left_of_it_and_what_went_before_fades() -> None:
    spec = Spec(user="ann", queue="fair")
    end = End(at=2 * HOUR, utime=100.0, stime=20.0)
    part = Part(host="h1", slots=2, state=PartState.GONE, end=end)
    run = Attempt(number=1, uid="u", dispatched=0.0, started=HOUR, parts=(part,))
    left = (1 - 0.1) / log(10)
    one = charged(None, run, spec, 2 * HOUR, 1.0)
    assert one is not None
    assert (one.user, one.queue, one.at) == ("ann", "fair", 2 * HOUR)
    assert (one.cpu, one.run) == pytest.approx((120 * left, 2 * HOUR * left))
    assert one.gpu == 0.0
    two = charged(one, run, spec, 3 * HOUR, 1.0)
    assert two is not None
    decayed_sums = (1 - 0.1**2) / log(10) / 2
    assert two.cpu == pytest.approx(one.cpu / 10 + 120 * decayed_sums)

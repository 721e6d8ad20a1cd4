"""What holds for a job while it runs."""

from __future__ import annotations

import pytest

from lavad.core.rules.run_settings import requested_mem


@pytest.mark.parametrize(
    ("resreq", "mb"),
    [
        ("", 0.0),
        ("select[mem>10]", 0.0),
        ("rusage[mem=20]", 20.0),
        ("rusage[mem=20.50/host:duration=1h]", 20.5),
        ("rusage[swp=1||mem=20]", 20.0),
        ("2*{rusage[swp=1]}+3*{rusage[mem=5]}", 5.0),
        ("{rusage[mem=7]} || {rusage[mem=9]}", 7.0),
        ("not a requirement", 0.0),
    ],
)
def test_the_memory_that_a_requirement_reserves(resreq: str, mb: float) -> None:
    assert requested_mem(resreq) == mb

"""What is said of wasted GPUs."""

from __future__ import annotations

import pytest

from proto.gpu_waste import sentence


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        ([(1000.0, 0.0), (1000.0, 960.0), (1000.0, 980.0), (1000.0, 100.0)], "4 GPUs asked, 2 idle 97 % of the time"),
        ([(3600.0, 3600.0)], "1 GPU asked, 1 idle 100 % of the time"),
        ([(1000.0, 799.0)], ""),
        ([(59.0, 59.0)], ""),
        ([(0.0, 0.0), (100.0, 100.0)], "2 GPUs asked, 1 idle 100 % of the time"),
        ([], ""),
    ],
)
def test_sentence(gpus: list[tuple[float, float]], said: str) -> None:
    assert sentence(gpus) == said

"""A search for the best parameters of a model, each trial a job: ``python sweep.py [TRIALS]`` (docs/examples.md).

The model is a line through points; a trial fits it by gradient descent with one learning rate and momentum, drawn at random.
"""

from __future__ import annotations

import random
import sys
from concurrent.futures import Future, as_completed

from lava_client import Executor

GOOD = 1e-9


def loss(rate: float, momentum: float, steps: int = 400) -> float:
    """The mean squared error after so many steps; infinite where the fit does not converge."""
    points = [(x / 10, 3 * x / 10 - 1) for x in range(-10, 11)]
    slope = offset = slope_speed = offset_speed = 0.0
    for _ in range(steps):
        errors = [(slope * x + offset - y, x) for x, y in points]
        slope_speed = momentum * slope_speed - rate * 2 * sum(error * x for error, x in errors) / len(points)
        offset_speed = momentum * offset_speed - rate * 2 * sum(error for error, _ in errors) / len(points)
        slope, offset = slope + slope_speed, offset + offset_speed
        if abs(slope) + abs(offset) > 1e6:
            return float("inf")
    return sum((slope * x + offset - y) ** 2 for x, y in points) / len(points)


def main() -> None:
    """Try parameters until a trial is good; what has not begun by then is cancelled."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    draw = random.Random(2)
    with Executor(slots=1, memory="200MB", retries=1) as executor:
        tried: dict[Future[float], tuple[float, float]] = {}
        for _ in range(trials):
            parameters = (10 ** draw.uniform(-3, 0.3), draw.uniform(0, 0.95))
            tried[executor.submit(loss, *parameters)] = parameters
        found = []
        for future in as_completed(tried):
            found.append((future.result(), *tried[future]))
            if found[-1][0] < GOOD:
                executor.shutdown(wait=False, cancel_futures=True)
                break
    best, rate, momentum = min(found)
    print(f"loss {best:.1e} with rate {rate:.3f} and momentum {momentum:.2f}")


if __name__ == "__main__":
    main()

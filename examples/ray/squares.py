"""The program of a Ray cluster that is a job: ``lava run ray.yaml`` (docs/examples.md)."""

from __future__ import annotations

import os
import time

import ray

CPUS = 1 + 2 * int(os.environ["LAVA_COUNT_WORKER"])


def square(number: int) -> int:
    return number * number


def main() -> None:
    """Wait until all workers have joined, and sum up what they compute."""
    ray.init(address=os.environ["LAVA_PEER_HEAD_0"])
    while ray.cluster_resources().get("CPU", 0) < CPUS:
        time.sleep(0.2)
    remote = ray.remote(square)
    print(f"{CPUS} CPUs: {sum(ray.get([remote.remote(number) for number in range(100)]))}", flush=True)


if __name__ == "__main__":
    main()

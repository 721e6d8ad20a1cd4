"""Stand-in for agent.monitor until it is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from proto import agent_pb2 as pb


class PartRoots(NamedTuple):
    key: int
    attempt: int
    pids: tuple[tuple[int, int, int], ...]
    shepherd_pid: int


def facts(gpus: int) -> pb.Facts:
    with open("/proc/sys/kernel/random/boot_id") as file:
        boot = file.read().strip()
    return pb.Facts(ncpus=os.cpu_count() or 1, boot_id=boot, type="X86_64", model="Generic", cpu_factor=1.0, max_mem_mb=1024)


class LoadSampler:
    def sample(self) -> dict[str, float]:
        return {"r1m": os.getloadavg()[0]}


class UsageSampler:
    def sample(self, parts: Mapping[str, PartRoots]) -> dict[str, pb.Usage]:
        return {}

    def forget(self, uid: str) -> pb.Usage | None:
        return None

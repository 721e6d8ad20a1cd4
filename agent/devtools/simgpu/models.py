"""What the simulated GPUs are: LAVA_SIM_GPU_MODELS and LAVA_SIM_GPU_MIG in the environment of the daemon.

LAVA_SIM_GPU_MODELS=H100,A100 names the model of each GPU, the last one also of those after it. LAVA_SIM_GPU_MIG splits
GPUs: "1=3g.40gb,2g.20gb,1c.3g.40gb 2=1g.10gb" gives GPU 1 three instances, the last with one compute slice of three.
LAVA_SIM_GPU_NUMA=2 spreads the GPUs over two NUMA nodes; without it no node is told.
Memory and power are those of NVIDIA's data sheets and nvidia-smi; instances have the usable memory of an A100's profiles.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple


class Model(NamedTuple):
    """Memory in MiB, power in W."""

    name: str
    memory_mb: int
    idle: int
    limit: int


class Instance(NamedTuple):
    """A MIG instance; ``slices`` of its GPU instance, ``compute`` of its compute instance; memory in MiB."""

    profile: str
    slices: int
    compute: int
    memory_mb: int


MODELS = {
    "H100": Model("NVIDIA H100 80GB HBM3", 81559, 70, 700),
    "H200": Model("NVIDIA H200", 143771, 75, 700),
    "A100": Model("NVIDIA A100-SXM4-80GB", 81920, 60, 400),
    "A100-40": Model("NVIDIA A100-SXM4-40GB", 40960, 55, 400),
    "L40S": Model("NVIDIA L40S", 46068, 35, 350),
    "V100": Model("Tesla V100-SXM2-32GB", 32768, 40, 300),
}
_PROFILE = re.compile(r"(?:([1-7])c\.)?([1-7])g\.(\d+)gb")
_LESS = {5: 256, 10: 512, 20: 512, 40: 512, 80: 768}
"""MiB that an instance's usable memory is less than its profile says, by the GB of the profile."""


def model_of(index: int) -> Model:
    """The model of a GPU; a name that is not known is an H100."""
    names = os.environ.get("LAVA_SIM_GPU_MODELS", "H100").split(",")
    return MODELS.get(names[min(index, len(names) - 1)].strip(), MODELS["H100"])


def numa_of(index: int, count: int) -> int:
    """The NUMA node of a GPU, -1: not told."""
    nodes = os.environ.get("LAVA_SIM_GPU_NUMA", "")
    return index * int(nodes) // count if nodes.isdigit() and int(nodes) else -1


def split(text: str) -> dict[int, tuple[Instance, ...]]:
    """GPU to its instances, of a text as LAVA_SIM_GPU_MIG has; what is not understood is passed over."""
    found = {}
    for word in text.split():
        index, _, profiles = word.partition("=")
        if index.isdigit():
            instances = (_instance(profile) for profile in profiles.split(","))
            found[int(index)] = tuple(instance for instance in instances if instance is not None)
    return found


def _instance(profile: str) -> Instance | None:
    match = _PROFILE.fullmatch(profile)
    if match is None:
        return None
    slices, size = int(match[2]), int(match[3])
    return Instance(profile, slices, int(match[1] or slices), size * 1024 - _LESS.get(size, 512))

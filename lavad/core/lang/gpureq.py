"""GPU requirements: how their levels merge, and how they are shown. `config/model/gpureq.py` reads them.

Rule: options merge one by one; only ``merge`` fills in the defaults.
"""

from __future__ import annotations

import re

import msgspec

from config.model.gpureq import GpuReq, GpuReqError, parse, read_size, why_not

__all__ = ["GpuReq", "GpuReqError", "merge", "mig_sizes", "model_of", "parse", "show", "why_not"]

_MODEL_MEMORY = re.compile(r"(.+?)[-#](\d+(?:\.\d+)?[KMGTPE]B?)", re.ASCII | re.IGNORECASE)
_Option = int | float | str | bool
_Options = dict[str, _Option]
_DEFAULTS: _Options = {"num": 1, "per": "host", "mode": "shared", "mps": "no", "j_exclusive": False}


def merge(own: GpuReq, *outer: GpuReq | None) -> GpuReq:
    """The job's options first, then application, queue and cluster, then the defaults."""
    merged: _Options = {}
    for level in (own, *(req for req in outer if req is not None)):
        known = {name: value for name in GpuReq.__struct_fields__ if (value := getattr(level, name)) is not None}
        # `num` and its unit are taken from the same level
        if "num" in merged:
            known.pop("per", None)
        merged = known | merged
    # a GPU in exclusive-process mode cannot be shared in any case
    if merged.get("mode") == "exclusive_process":
        merged["j_exclusive"] = True
    # tasks that get GPUs in blocks cannot get those nearest to their processors too: LSF prefers the blocks
    if merged.get("block"):
        merged["aff"] = False
    return msgspec.convert(_DEFAULTS | merged, GpuReq)


def model_of(req: GpuReq) -> tuple[str, float | None]:
    """The model's name and the memory in MB that `gmodel=NAME-12G` asks for."""
    match = _MODEL_MEMORY.fullmatch(req.gmodel or "")
    if match is None:
        return req.gmodel or "", None
    return match[1], read_size(match[2], 1.0)


def mig_sizes(req: GpuReq) -> tuple[int, int] | None:
    """Slices of the GPU instance and of the compute instance that `mig=GI[/CI]` asks for; LSF: CI is 1 where it is not named."""
    if req.mig is None:
        return None
    size, _, compute = req.mig.partition("/")
    return int(size), int(compute or 1)


def show(req: GpuReq) -> str:
    """As bjobs -l prints it; parses back to the same requirement."""
    words = [f"{name}={_shown(req, name)}" for name in _ORDER if _value(req, name) is not None]
    return ":".join(words) or "-"


_ORDER = (
    "num",
    "mode",
    "mps",
    "j_exclusive",
    "aff",
    "block",
    "gpack",
    "gvendor",
    "gmodel",
    "gtile",
    "gmem",
    "glink",
    "mig",
)


def _value(req: GpuReq, name: str) -> _Option | None:
    value: _Option | None = req.gmem_mb if name == "gmem" else getattr(req, name)
    return value


def _shown(req: GpuReq, name: str) -> str:
    value = _value(req, name)
    if name == "num":
        return f"{value}/task" if req.per == "task" else str(value)
    if req.gmem_mb is not None and name == "gmem":
        return f"{req.gmem_mb:.6f}".rstrip("0").rstrip(".") + "M"
    if name == "gtile" and value == 0:
        return "!"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)

"""GPU requirements: the string of `bsub -gpu`, GPU_REQ and LSB_GPU_REQ.

Rule: an option that is not named stays None, so that job, application, queue and cluster merge option by option;
only `merge` fills in the defaults. The text `-` names no option.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTPE]?)B?", re.ASCII | re.IGNORECASE)
_MODEL = re.compile(r"[A-Za-z0-9_.+\-]{1,128}(#[0-9.]{1,12}[KMGTPE]?B?)?", re.ASCII | re.IGNORECASE)
_MODEL_MEMORY = re.compile(r"(.+?)[-#](\d+(?:\.\d+)?[KMGTPE]B?)", re.ASCII | re.IGNORECASE)
_MIG = re.compile(r"\d{1,3}(/\d{1,3})?", re.ASCII)
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4}
_MAX_TEXT = 1024
_MAX_MB = 1e12
_Option = int | float | str | bool
_Options = dict[str, _Option]


class GpuReqError(ValueError):
    """The message is one line that names the option."""


class GpuReq(msgspec.Struct, frozen=True, omit_defaults=True):
    """`gtile` 0 is `!` (spread evenly); `mig` is `GI` or `GI/CI`."""

    num: int | None = None
    per: str | None = None
    mode: str | None = None
    mps: str | None = None
    j_exclusive: bool | None = None
    gmodel: str | None = None
    gmem_mb: float | None = None
    gtile: int | None = None
    glink: bool | None = None
    aff: bool | None = None
    block: bool | None = None
    gpack: bool | None = None
    gvendor: str | None = None
    mig: str | None = None


_DEFAULTS: _Options = {"num": 1, "per": "host", "mode": "shared", "mps": "no", "j_exclusive": False}


def parse(text: str, unit_mb: float = 1.0) -> GpuReq:
    """`unit_mb` is what a plain gmem counts in (LSF_UNIT_FOR_LIMITS)."""
    stripped = text.strip().strip('"').strip()
    if len(stripped) > _MAX_TEXT:
        raise GpuReqError("Bad GPU requirement: too long")
    if stripped == "-":
        return GpuReq()
    options: _Options = {}
    for word in stripped.split(":"):
        key, _, value = (piece.strip() for piece in word.partition("="))
        read = _READERS.get(key)
        found = read(value.strip("'"), unit_mb) if read else None
        if found is None:
            raise GpuReqError(f"Bad GPU requirement <{' '.join(word.split())}>")
        if found.keys() & options.keys():
            raise GpuReqError(f"Bad GPU requirement: {key} is given twice")
        options |= found
    return msgspec.convert(options, GpuReq)


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
    if merged.get("gvendor") == "amd":
        merged["mps"] = "no"
    return msgspec.convert(_DEFAULTS | merged, GpuReq)


def model_of(req: GpuReq) -> tuple[str, float | None]:
    """The model's name and the memory in MB that `gmodel=NAME-12G` asks for."""
    match = _MODEL_MEMORY.fullmatch(req.gmodel or "")
    if match is None:
        return req.gmodel or "", None
    return match[1], _size(match[2], 1.0)


def show(req: GpuReq) -> str:
    """As bjobs -l prints it; parses back to the same requirement."""
    words = [f"{name}={_shown(req, name)}" for name in _ORDER if _value(req, name) is not None]
    return ":".join(words) or "-"


def unsupported(req: GpuReq) -> list[str]:
    """Options that are read but have no effect; the caller warns about them or refuses the job."""
    found = []
    if req.mig is not None:
        found.append(f"mig={req.mig}")
    if req.gvendor == "amd":
        found.append("gvendor=amd")
    if req.block:
        found.append("block=yes")
    if req.mps is not None and req.mps.startswith("per_"):
        found.append(f"mps={req.mps}")
    return found


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


def _size(text: str, unit_mb: float) -> float | None:
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    size = round(float(match[1]) * (_UNITS[match[2].upper()] if match[2] else unit_mb), 6)
    return size if size <= _MAX_MB else None


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) else None


Reader = Callable[[str, float], "_Options | None"]


def _read_num(value: str, unit_mb: float) -> _Options | None:
    number, slash, per = value.partition("/")
    count = _count(number)
    if count is None or (slash and per not in ("task", "host")):
        return None
    return {"num": count, "per": per or "host"}


def _read_mps(value: str, unit_mb: float) -> _Options | None:
    first, *flags = value.split(",")
    named = {"shared" if flag == "share" else flag for flag in flags}
    if first not in ("yes", "no", "per_socket", "per_gpu") or named - {"shared", "nocvd"} or (first == "no" and named):
        return None
    return {"mps": ",".join([first, *(flag for flag in ("shared", "nocvd") if flag in named)])}


def _read_gmem(value: str, unit_mb: float) -> _Options | None:
    size = _size(value, unit_mb)
    return {"gmem_mb": size} if size else None


def _read_gtile(value: str, unit_mb: float) -> _Options | None:
    count = 0 if value == "!" else _count(value)
    return None if count is None else {"gtile": count}


def _flag(name: str, *, only_yes: bool = False) -> Reader:
    def read(value: str, unit_mb: float) -> _Options | None:
        if value not in (("yes",) if only_yes else ("yes", "no")):
            return None
        return {name: value == "yes"}

    return read


def _one_of(name: str, *allowed: str) -> Reader:
    return lambda value, unit_mb: {name: value} if value in allowed else None


def _matching(name: str, pattern: re.Pattern[str]) -> Reader:
    return lambda value, unit_mb: {name: value} if pattern.fullmatch(value) else None


_READERS: dict[str, Reader] = {
    "num": _read_num,
    "mode": _one_of("mode", "shared", "exclusive_process"),
    "mps": _read_mps,
    "j_exclusive": _flag("j_exclusive"),
    "gmodel": _matching("gmodel", _MODEL),
    "gmem": _read_gmem,
    "gtile": _read_gtile,
    "glink": _flag("glink", only_yes=True),
    "nvlink": _flag("glink", only_yes=True),
    "aff": _flag("aff"),
    "block": _flag("block"),
    "gpack": _flag("gpack"),
    "gvendor": _one_of("gvendor", "nvidia", "amd"),
    "mig": _matching("mig", _MIG),
}

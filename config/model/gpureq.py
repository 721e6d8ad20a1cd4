"""What a job asks of GPUs: the text of `bsub -gpu`, GPU_REQ and LSB_GPU_REQ.

Rule: an option that is not named stays None, so that the levels merge option by option (`lavad/core/lang/gpureq.py`). The text
`-` names no option. Source of the options and their values: IBM's page of `bsub -gpu`, 10.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

_SIZE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([KMGTPE]?)B?", re.ASCII | re.IGNORECASE)
_MODEL = re.compile(r"[A-Za-z0-9_.+\-]{1,128}(#[0-9.]{1,12}[KMGTPE]?B?)?", re.ASCII | re.IGNORECASE)
_MIG = re.compile(r"([12347])(?:/([1-7]))?", re.ASCII)
_NO_MIG = ((4, 3), (7, 5), (7, 6))
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4}
_MAX_TEXT = 1024
_MAX_MB = 1e12
_Value = int | float | str | bool
_Options = dict[str, _Value]


class GpuReqError(ValueError):
    """The message is one line that names the option and says what it may be."""


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


def parse(text: str, unit_mb: float = 1.0) -> GpuReq:
    """`unit_mb` is what a plain gmem counts in (LSF_UNIT_FOR_LIMITS). Raises GpuReqError."""
    stripped = text.strip().strip('"').strip()
    if len(stripped) > _MAX_TEXT:
        raise GpuReqError(f"Bad GPU requirement: it is longer than {_MAX_TEXT} characters")
    if stripped == "-":
        return GpuReq()
    options: _Options = {}
    for word in stripped.split(":"):
        key, _, value = (piece.strip() for piece in word.partition("="))
        shown = " ".join(word.split())
        if key not in _READERS:
            raise GpuReqError(f"Bad GPU requirement <{shown}>: {f'there is no option {key}' if key else 'an option is missing'}")
        read, form = _READERS[key]
        found = read(value.strip("'"), unit_mb)
        if found is None:
            raise GpuReqError(f"Bad GPU requirement <{shown}>: {key} is {form}")
        if found.keys() & options.keys():
            raise GpuReqError(f"Bad GPU requirement: {key} is given twice")
        options |= found
    return msgspec.convert(options, GpuReq)


def why_not(req: GpuReq) -> str:
    """Why these options cannot be had, one by one or together; "": they can."""
    if req.gvendor == "amd":
        return "GPU requirement gvendor=amd is not supported by lava: it finds GPUs of NVIDIA only"
    if req.mig is not None and req.glink:
        return f"Bad GPU requirement: mig={req.mig} and glink=yes exclude each other: NVLink does not join MIG instances"
    return ""


def read_size(text: str, unit_mb: float) -> float | None:
    """A size such as `12G` in MB, None: it is none."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    size = round(float(match[1]) * (_UNITS[match[2].upper()] if match[2] else unit_mb), 6)
    return size if size <= _MAX_MB else None


_Reader = Callable[[str, float], "_Options | None"]


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) else None


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
    size = read_size(value, unit_mb)
    return {"gmem_mb": size} if size else None


def _read_gtile(value: str, unit_mb: float) -> _Options | None:
    count = 0 if value == "!" else _count(value)
    return None if count is None else {"gtile": count}


def _read_mig(value: str, unit_mb: float) -> _Options | None:
    match = _MIG.fullmatch(value)
    sizes = (int(match[1]), int(match[2] or 1)) if match is not None else (0, 1)
    return None if sizes[1] > sizes[0] or sizes in _NO_MIG else {"mig": value}


def _read_model(value: str, unit_mb: float) -> _Options | None:
    return {"gmodel": value} if _MODEL.fullmatch(value) else None


def _flag(name: str, *, only_yes: bool = False) -> tuple[_Reader, str]:
    def read(value: str, unit_mb: float) -> _Options | None:
        if value not in (("yes",) if only_yes else ("yes", "no")):
            return None
        return {name: value == "yes"}

    return read, "yes" if only_yes else "yes or no"


def _one_of(name: str, *allowed: str) -> tuple[_Reader, str]:
    return lambda value, unit_mb: {name: value} if value in allowed else None, " or ".join(allowed)


_READERS: dict[str, tuple[_Reader, str]] = {
    "num": (_read_num, "a number from 1 to 999999, then perhaps /task or /host"),
    "mode": _one_of("mode", "shared", "exclusive_process"),
    "mps": (_read_mps, "yes, per_socket or per_gpu, then perhaps ,shared and ,nocvd, or no"),
    "j_exclusive": _flag("j_exclusive"),
    "gmodel": (_read_model, "a model's name or a part of it, then perhaps - and its memory"),
    "gmem": (_read_gmem, "a size above 0, such as 10G"),
    "gtile": (_read_gtile, "a number above 0, or !"),
    "glink": _flag("glink", only_yes=True),
    "nvlink": _flag("glink", only_yes=True),
    "aff": _flag("aff"),
    "block": _flag("block"),
    "gpack": _flag("gpack"),
    "gvendor": _one_of("gvendor", "nvidia", "amd"),
    "mig": (_read_mig, "GI or GI/CI: GI is 1, 2, 3, 4 or 7, CI from 1 to GI, and none of 4/3, 7/5, 7/6"),
}

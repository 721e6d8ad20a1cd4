"""Values of parameters about what the scheduler plans with."""

from __future__ import annotations

import re

from config.model.values import ExtendableRunlimit
from config.values.values import Scope

_RANGE = re.compile(r"\[\s*(\w+)\s*=\s*(?:\{?\s*([0-9.]+)\s*,\s*(?:\}\s*)?)?([0-9.]+)\s*(?:\}\s*)?\]", re.ASCII)
_AMOUNT = r"[0-9]{1,10}(?:\.[0-9]{1,6})?"
_EXTENDABLE = re.compile(r"(BASE|INCREMENT|GRACE|REQUEUE)\s*\[([^\[\]]*)\]")


def extendable_runlimit(value: str, _: Scope) -> ExtendableRunlimit:
    """`BASE[minutes] INCREMENT[minutes] GRACE[minutes] REQUEUE[Y|N]`; all but BASE may be missing."""
    found = {name: text.strip() for name, text in _EXTENDABLE.findall(value)}
    words = found.get("REQUEUE", "N")
    minutes = {name: text for name, text in found.items() if name != "REQUEUE"}
    good = all(re.fullmatch("[0-9]{1,7}", text) for text in minutes.values()) and words.upper() in ("Y", "N")
    if _EXTENDABLE.sub("", value).strip() or "BASE" not in found or not good:
        raise ValueError(f"'{value}' is not BASE[minutes] INCREMENT[minutes] GRACE[minutes] REQUEUE[Y|N]")
    base, increment, grace = (int(minutes.get(name) or 0) * 60 for name in ("BASE", "INCREMENT", "GRACE"))
    if not base or minutes.get("INCREMENT") in ("0", "00"):
        raise ValueError(f"'{value}': BASE and INCREMENT are one minute at least")
    return ExtendableRunlimit(base, increment or base, grace, words.upper() == "Y")


def job_sizes(value: str, _: Scope) -> tuple[int, ...]:
    """`default [size …]`: numbers of slots."""
    if not all(re.fullmatch("[1-9][0-9]{0,8}", word) for word in value.split()):
        raise ValueError(f"'{value}' is not a list of numbers from 1")
    return tuple(dict.fromkeys(map(int, value.split())))


def host_order(value: str, _: Scope) -> str:
    """`[-]index[:[-]index …]`, as of order[]."""
    words = [word.strip() for word in value.split(":")]
    if not all(re.fullmatch(r"-?[A-Za-z_][A-Za-z0-9_]*", word) for word in words):
        raise ValueError(f"'{value}' is not index:index …")
    return ":".join(words)


def reservation_limits(value: str, _: Scope) -> tuple[tuple[str, float, float], ...]:
    """`[resource={min,}max] …`: (resource, least, most)."""
    found = _RANGE.findall(value)
    amounts = [amount for _, least, most in found for amount in (least or "0", most)]
    if not found or _RANGE.sub("", value).strip() or not all(re.fullmatch(_AMOUNT, amount) for amount in amounts):
        raise ValueError(f"'{value}' is not [resource=min,max] …")
    limits = tuple((name, float(least or 0), float(most)) for name, least, most in found)
    for name, least, most in limits:
        if least > most:
            raise ValueError(f"{name}: {least:g} is more than {most:g}")
    return limits

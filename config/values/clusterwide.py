"""Forms of value that lsb.params and lsf.conf alone have: text -> typed value, or ValueError with words for the user."""

import re
import signal

from config.model.values import Backfill, why_not_method
from config.values import values as v


def pack_weights(value: str, scope: v.Scope) -> tuple[tuple[str, float], ...]:
    """`slots=1 mem=0 gpus=4`: not all of them 0."""
    found = {"slots": 1.0, "mem": 1.0, "gpus": 1.0}
    for word in value.split():
        name, _, number = word.partition("=")
        if name not in found:
            raise ValueError(f"'{name}' is none of slots, mem, gpus")
        found[name] = float(str(v.real()(number, scope)))
    if not any(found.values()):
        raise ValueError("no weight is above 0")
    return tuple(found.items())


def some_minutes(value: str, scope: v.Scope) -> int:
    """As ``minutes``, and not none."""
    seconds = v.minutes(value, scope)
    if seconds < 60:
        raise ValueError("must be at least 1 minute")
    return seconds


def colon_list(value: str, _: v.Scope) -> tuple[str, ...]:
    return tuple(value.replace(":", " ").split())


def mail_pattern(value: str, _: v.Scope) -> str:
    """An address in which !U is the user and !H the host of submission."""
    if not re.fullmatch(r"[A-Za-z0-9._!@+%][A-Za-z0-9._!@+%-]*", value):
        raise ValueError(f"'{value[:50]}' is not an address such as !U@example.org")
    return value


def traces(value: str, _: v.Scope) -> str:
    """Y, N, or the address of a collector; "" for N."""
    if value.upper() in ("Y", "N"):
        return "" if value.upper() == "N" else "Y"
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise ValueError(f"'{value[:50]}' is none of Y, N, and an address such as http://collector:4318")
    return value


def memory_size(value: str, scope: v.Scope) -> int:
    """KB, at least 64 MB."""
    kb = v.size(value, scope)
    if kb < 64 * 1024:
        raise ValueError(f"'{value}' is less than 64M")
    return kb


def checkpoint_method(value: str, _: v.Scope) -> str:
    """Names of checkpoint methods, of which the first counts."""
    for name in value.split():
        if why := why_not_method(name):
            raise ValueError(why)
    return value


def signal_name(value: str, scope: v.Scope) -> str:
    """A signal's number, as text."""
    found = signal.Signals.__members__.get(f"SIG{value.upper().removeprefix('SIG')}")
    if found is not None:
        return str(int(found))
    try:
        return str(v.number(1, signal.SIGRTMAX)(value, scope))
    except ValueError:
        raise ValueError(f"'{value[:50]}' is no signal") from None


def priority_classes(value: str, _: v.Scope) -> str:
    """``name=number …``: the user priority (bsub -sp) of a manifest's priority class."""
    for word in value.split():
        name, equal, number = word.partition("=")
        if not name or not equal or not (number.isascii() and number.isdigit() and int(number[:9]) > 0):
            raise ValueError(f"'{word[:50]}' is not NAME=NUMBER")
    return value


def backfill(value: str, scope: v.Scope) -> Backfill:
    word = v.choice("EASY", "CONSERVATIVE")(value, scope)
    return Backfill(str(word).lower())


def path(value: str, _: v.Scope) -> str:
    """Daemons run in no folder of the site's."""
    if not value.startswith("/"):
        raise ValueError(f"{value} is not an absolute path")
    return value


def host_names(value: str, _: v.Scope) -> tuple[str, ...]:
    """Of a list with blanks between them."""
    found = tuple(value.split())
    if wrong := next((word for word in found if set(word) & set(",;:'\"")), ""):
        raise ValueError(f"{wrong} is no name of a host: names have blanks between them")
    return found

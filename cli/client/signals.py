"""Signal names and numbers of Linux, as ``bkill -s`` takes them and ``bkill -l`` lists them."""

from __future__ import annotations

from cli.client.context import Fail
from proto.numbers import find_number

NAMES = (
    "HUP",
    "INT",
    "QUIT",
    "ILL",
    "TRAP",
    "ABRT",
    "BUS",
    "FPE",
    "KILL",
    "USR1",
    "SEGV",
    "USR2",
    "PIPE",
    "ALRM",
    "TERM",
    "STKFLT",
    "CHLD",
    "CONT",
    "STOP",
    "TSTP",
    "TTIN",
    "TTOU",
    "URG",
    "XCPU",
    "XFSZ",
    "VTALRM",
    "PROF",
    "WINCH",
    "IO",
    "PWR",
    "SYS",
)
ALIASES = {"IOT": 6, "CLD": 17, "POLL": 29}
LARGEST = 64


def signal_number(text: str) -> int:
    """``KILL``, ``SIGKILL`` or ``9``."""
    if (number := find_number(text, 1, LARGEST)) is not None:
        return number
    name = text.upper().removeprefix("SIG")
    if name in NAMES:
        return NAMES.index(name) + 1
    if name in ALIASES:
        return ALIASES[name]
    raise Fail(f"{text}: Illegal signal value")

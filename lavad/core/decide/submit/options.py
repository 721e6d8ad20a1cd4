"""The options of bsub and bmod, from their raw text to fields of ``Spec`` and ``JobText``.

Rule: an option that no module here reads is refused by its name; none is ignored or misread. Error texts are LSF's.
"""

from __future__ import annotations

from collections.abc import Mapping

from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.submit import esubs, execution, files, gpus, memory, relations, times  # noqa: F401 - they register their readers
from lavad.core.decide.submit.limits import check_host_specs
from lavad.core.decide.submit.readers import READERS
from lavad.core.decide.submit.slots import settle_slots
from lavad.core.lang.asks import OptionValue, Refused
from proto.options import BY_NAME, FLAG

MAX_TEXT = 2**16
SENT_WITH_TEXT = frozenset({"ul"})
"""Flags for which a command sends what it has read: the limits of the shell."""


def read_options(draft: JobDraft, options: Mapping[str, OptionValue]) -> None:
    """Apply all options to the draft; raises Refused for the first that is wrong or unknown."""
    for option, value in sorted(options.items(), key=lambda item: item[0] == "nnodes"):  # nnodes last, as it depends on -n
        _read(draft, option, value)
    settle_slots(draft, "n" in options)
    if {"W", "c"} <= options.keys():  # one of a default and one of the job may differ
        check_host_specs(draft)


def read_own(draft: JobDraft, options: Mapping[str, OptionValue]) -> None:
    """Apply options that nothing else depends on; raises as ``read_options``."""
    for option, value in options.items():
        _read(draft, option, value)


def _read(draft: JobDraft, option: str, value: OptionValue) -> None:
    longest = len(value) if isinstance(value, str) else max(map(len, value), default=0) if isinstance(value, list) else 0
    if longest > MAX_TEXT and option != "is":
        raise Refused(f"-{option}: The value is too long")
    reader = READERS.get(option)
    if reader is None:
        raise Refused(f"option -{option} is not supported by lava")
    if value is not True and BY_NAME[option].takes == FLAG and option not in SENT_WITH_TEXT:
        raise Refused(f"-{option}: the option takes no argument (true where it is set, else it is left out)")
    reader(draft, option, value)

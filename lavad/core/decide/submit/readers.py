"""The readers of options: a function for each row of the table in ``proto/options.py``, registered with ``@reads``.

Rule: a reader changes the draft as the option's raw text says, or raises Refused with LSF's words.
"""

from __future__ import annotations

from collections.abc import Callable

from lavad.core.decide.base.draft import JobDraft, text_of
from lavad.core.lang import when
from lavad.core.lang.asks import OptionValue, Refused
from proto.options import BY_NAME

Reader = Callable[[JobDraft, str, OptionValue], None]
READERS: dict[str, Reader] = {}
"""By the name of the option, which a reader gets as its second argument."""


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Register the reader of these options; ValueError for one that has no row, or another reader."""

    def register(reader: Reader) -> Reader:
        for name in names:
            if name not in BY_NAME or name in READERS:
                raise ValueError(f"-{name} has no row in proto/options.py, or another reader")
            READERS[name] = reader
        return reader

    return register


def find_duration(text: str) -> tuple[int, str | None] | None:
    """``[hour:]minute[/host]`` as (seconds, host or model), else None."""
    try:
        return when.parse_limit(text)
    except when.WhenError:
        return None


def check_host_spec(draft: JobDraft, host: str | None) -> None:
    """A time may be given for a host or a model that there is."""
    if host is not None and host not in draft.known_hosts and host not in {name for name, _ in draft.conf.models}:
        raise Refused(f"{host}: Bad host specification")


def printable_text(option: str, value: OptionValue) -> str:
    """The argument of an option that shows in lists."""
    text = text_of(option, value)
    if not text.isprintable():
        raise Refused(f"-{option} {text!r}: only characters that can be printed")
    return text


def path_of(option: str, value: OptionValue) -> str:
    """The argument of an option that names a file."""
    path = text_of(option, value)
    if not path or "\0" in path or len(path) > 4095:
        raise Refused(f"{path[:80]}: Bad file name")
    return path


def texts_of(option: str, value: OptionValue) -> list[str]:
    """All arguments of an option that may be given several times."""
    return value if isinstance(value, list) else [text_of(option, value)]

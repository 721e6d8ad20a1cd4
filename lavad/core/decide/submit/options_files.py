"""Options about files that come and go with a job, about mail, and limits of the caller's own; see ``options``."""

from __future__ import annotations

import re
from collections.abc import Callable

from lavad.core.decide.base.draft import Draft, text_of
from lavad.core.lang import when
from lavad.core.lang.asks import OptionValue, Refused
from lavad.core.lang.resreq import text as resreq

MAX_INPUT = 8 << 20
MAX_THREADS = 2**31 - 1
MAX_HOSTS = 10_000
OPERATORS = (">", "<", "<<", "><", "<>")
_USER_LIMITS = ("core", "cpu", "data", "file", "stack")


def threads(draft: Draft, value: OptionValue) -> None:
    """``-T``: most threads of the job."""
    text = text_of("T", value)
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_THREADS:
        raise Refused(f"{text}: Bad THREADLIMIT specification")
    draft.limit(threads=int(text))


def spooled(draft: Draft, value: OptionValue) -> None:
    """``-is``: the command sends the file's name and what is in it, in base64."""
    if not isinstance(value, list) or len(value) != 2:
        raise Refused("option -is is not supported by lava here")
    path, data = value
    if len(data) > MAX_INPUT or not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", data) or len(data) % 4:
        raise Refused(f"{path[:80]}: The input file is too large")
    draft.say(input=path, input_data=data or "====")


def copies(draft: Draft, value: OptionValue) -> None:
    """``-f "local operator [remote]"``."""
    found = []
    for text in value if isinstance(value, list) else [text_of("f", value)]:
        words = text.split()
        good = len(words) in (2, 3) and words[1] in OPERATORS and words[0] not in OPERATORS
        if not good or len(text) > 8192:
            raise Refused(f"{text[:80]}: Bad file copy specification")
        found.append(" ".join(words))
    draft.say(copies=tuple(found))


def hostfile(draft: Draft, value: OptionValue) -> None:
    """``-hostfile``: the command sends the file's name and its lines, ``host slots`` each."""
    if not isinstance(value, list) or not 2 <= len(value) <= MAX_HOSTS:
        raise Refused("option -hostfile is not supported by lava here")
    counts: dict[str, int] = {}
    for line in value[1:]:
        name, _, slots = line.partition(" ")
        if name not in draft.known_hosts:
            raise Refused(f"{name[:80]}: Bad host name, host group name or cluster name")
        if not slots.isascii() or not slots.isdigit() or not 0 < int(slots) <= MAX_THREADS:
            raise Refused(f"{line[:80]}: The number of processors must be a positive integer")
        counts[name] = counts.get(name, 0) + int(slots)
    one = len(counts) == 1
    terms = [f"select[hname=={name}]" if one else f"{slots}*{{select[hname=={name}]}}" for name, slots in counts.items()]
    try:
        wish = resreq.merge([terms[0] + " span[hosts=1]" if one else "+".join(terms)], 1.0)
    except resreq.ResReqError as error:
        raise Refused(str(error)) from None
    draft.set(resreq=wish, slots=sum(counts.values()), max_slots=sum(counts.values()))
    draft.say(host_file=value[0])


def user_limits(draft: Draft, value: OptionValue) -> None:
    """``-ul``: the command sends the caller's own limits; what the job asks for itself goes before them."""
    for word in text_of("ul", value).split():
        name, _, size = word.partition("=")
        if name not in _USER_LIMITS or not size.isascii() or not size.isdigit() or len(size) > 15:
            raise Refused(f"{word[:80]}: Bad user limit")
        if getattr(draft.spec.limits, name) is None and (int(size) or name == "core"):
            draft.limit(**{name: int(size)})


def notify(word: str = "") -> Callable[[Draft, OptionValue], None]:
    """``-notify "exit done start suspend"`` and its short forms."""

    def read(draft: Draft, value: OptionValue) -> None:
        words = [word] if word and value else text_of("notify", value).split() if not word else []
        for one in words:
            if one not in ("exit", "done", "start", "suspend"):
                raise Refused(f"{one[:80]}: Bad notification specification")
        if not words and not word:
            raise Refused("Bad notification specification")
        known = draft.text.notify.split()
        draft.say(notify=" ".join(dict.fromkeys([*known, *words])))

    return read


def pend_limit(option: str, field: str) -> Callable[[Draft, OptionValue], None]:
    """``-ptl`` and ``-eptl``, ``[hour:]minute``."""

    def read(draft: Draft, value: OptionValue) -> None:
        text = text_of(option, value)
        try:
            seconds, host = when.parse_limit(text)
        except when.WhenError:
            seconds, host = 0, None
        if not seconds or host is not None:
            raise Refused(f"{text[:80]}: Bad pending time limit specification")
        draft.say(**{field: seconds // 60})

    return read

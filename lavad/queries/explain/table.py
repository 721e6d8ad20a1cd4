"""All that is explained: found by code, by name or by text, and as docs/reasons.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from lavad.core.lang.states import TermReason
from lavad.core.site.pend_reason import (
    JOB_RUSAGE,
    LIMIT_JOBS,
    LIMIT_RESOURCE,
    LIMIT_SLOTS,
    LOAD,
    NEVER_RUSAGE,
    NEVER_TOGETHER,
    POOL,
    QUE_RUSAGE,
)
from lavad.queries.explain import endings, refusals, waiting
from lavad.queries.explain.entry import Entry, Kind

_RANGES = (
    (POOL, 10_000),
    (LIMIT_RESOURCE, 10_000),
    (LIMIT_JOBS, 10_000),
    (LIMIT_SLOTS, 10_000),
    *((base, 300) for base in (LOAD, QUE_RUSAGE, JOB_RUSAGE, NEVER_RUSAGE, NEVER_TOGETHER)),
)
"""Codes that count from a base: resources by their place in lsf.shared, limits and pools by that in lsb.resources."""


@cache
def entries() -> tuple[Entry, ...]:
    """Every entry, in the order of docs/reasons.md."""
    return (*waiting.entries(), *endings.entries(), *refusals.entries())


@cache
def _by_code() -> dict[tuple[Kind, int], Entry]:
    return {(entry.kind, entry.code): entry for entry in entries() if entry.code is not None}


@cache
def _by_name() -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries():
        if entry.name:
            found.setdefault(entry.name.lower(), []).append(entry)
    return found


def of_reason(code: int) -> Entry | None:
    """The entry of a pend reason, also of one about a resource or a limit."""
    known = _by_code().get((Kind.PEND, code))
    if known is not None:
        return known
    base = next((base for base, many in _RANGES if base <= code < base + many), 0)
    return _by_code().get((Kind.PEND, base))


def of_end(reason: TermReason) -> Entry | None:
    """The entry of a reason with which a job was ended; None: it ended by itself."""
    return None if reason is TermReason.NONE else _by_name()[reason.name.lower()][0]


def of_exit(code: int) -> Entry | None:
    """The entry of an exit code, 128 + N for signal N; None: it has no meaning of its own."""
    return _by_code().get((Kind.EXIT, code))


def find(asked: str) -> list[Entry]:
    """By code, by name, by a text that users read, else by words in it; the best first, [] for none."""
    asked = asked.strip()
    if asked.lstrip("-+").isdigit():
        return _of_number(int(asked))
    word = asked.split(":")[0].strip().lower()
    named = _by_name().get(word) or _by_name().get(f"term_{word}") or _by_name().get(f"sig{word}")
    if named:
        return named
    matching = [entry for entry in entries() if entry.text != "…" and entry.pattern.search(asked)]
    if matching:
        return _closest(matching)
    words = asked.lower().split()
    return [entry for entry in entries() if all(word in f"{entry.text} {entry.means}".lower() for word in words)]


def _of_number(number: int) -> list[Entry]:
    if number < 0:  # as Python says that a signal ended a process
        number = 128 - number
    found = [entry for entry in (of_reason(number), of_exit(number)) if entry is not None]
    return found


def _closest(found: list[Entry]) -> list[Entry]:
    """Of those whose text was found in what was asked: what is not a mere refusal by its form, else the first."""
    exact = [entry for entry in found if entry.kind is not Kind.REFUSAL]
    return exact or found[:1]


def advice(entry: Entry, job: str) -> str:
    """What to do, of this job; "" for nothing."""
    if entry.do.startswith(("-", "nothing")):
        return ""
    return re.sub(r"\bJOB\b", job, entry.do)


def told(entry: Entry) -> str:
    """The lines that ``lava explain`` prints."""
    name = entry.name if entry.code is None else f"{entry.code} {entry.name}".strip()
    return f"{name}: {entry.text.replace('|', ' | ')}\n  Meaning: {entry.means}\n  What to do: {entry.do}\n"


def document() -> str:
    """docs/reasons.md."""
    return "".join(_document())


def _document() -> Iterator[str]:
    yield "# Reasons\n\nWhat commands say, what it means, and what to do. `lava explain CODE|NAME|TEXT` prints an entry,\n"
    yield "`lava why JOB` those of a job. Made from `lavad/queries/explain` by `lava explain --markdown > docs/reasons.md`.\n"
    for kind in Kind:
        yield f"\n## {kind}\n\n| | Text | Meaning | What to do |\n|-|-|-|-|\n"
        for entry in entries():
            if entry.kind is kind:
                name = " ".join(str(part) for part in (entry.code, entry.name) if part not in (None, ""))
                text = entry.text.replace("|", " · ")
                yield f"| {name} | {_plain(text)} | {_plain(entry.means)} | {_plain(entry.do)} |\n"


def _plain(text: str) -> str:
    """In a cell of a table."""
    return text.replace("<", "\\<").replace("|", "\\|").replace("*", "\\*")

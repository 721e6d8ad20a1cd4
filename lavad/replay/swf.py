"""Reads job traces in the Standard Workload Format (version 2 and 2.2), plain or gzipped.

Rule: a job whose submit time, run time or size is unknown is left out and counted; a line that is no job ends the reading.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TextIO

import msgspec

FIELDS = 18
_USED = 12
"""Fields after the user's number are not used."""
_HEADER = re.compile(r";\s*([A-Za-z][A-Za-z ]*?)\s*:\s*(.*)")
_LARGEST = 10**15
LONGEST = 1 << 20
"""Characters of a line: more than any job or header has."""


class TraceError(Exception):
    """Why a trace cannot be used, in one line."""


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """One job. Times in seconds; ``requested`` is the run time where the trace has none; ``line`` counts from 1."""

    number: int
    line: int
    submit: float
    run: float
    slots: int
    requested: float
    user: int | str


class Trace(msgspec.Struct, frozen=True):
    """The jobs in queue order (submit time, then line), the header, and how many jobs were left out, by reason."""

    name: str
    jobs: list[TraceJob]
    header: dict[str, str]
    skipped: dict[str, int]

    def find_machine(self) -> int:
        """Processors of the machine that the header names (MaxProcs, else MaxNodes); 0: it names none."""
        for field in ("MaxProcs", "MaxNodes"):
            words = self.header.get(field, "").split()
            if words and words[0].isdecimal() and len(words[0]) < 10:
                return int(words[0])
        return 0


def read_trace(path: str) -> Trace:
    """The trace of a file. TraceError names the file, and the line if one is to blame."""
    try:
        with open(path, "rb") as probe:
            packed = probe.read(2) == b"\x1f\x8b"
        with (gzip.open if packed else open)(path, "rt", encoding="utf-8", errors="replace") as file:
            return parse(_lines(file, path), path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise TraceError(f"{path}: damaged gzip file: {error}") from None
    except ValueError:
        raise TraceError(f"{path!r}: not a file name") from None


def _lines(file: TextIO, name: str) -> Iterator[str]:
    while line := file.readline(LONGEST):
        if len(line) == LONGEST:
            raise TraceError(f"{name}: a line of it is longer than {LONGEST >> 20} MB")
        yield line


def parse(lines: Iterable[str], name: str) -> Trace:
    """The same from lines; ``name`` stands for the file in errors."""
    jobs: list[TraceJob] = []
    header: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    for count, text in enumerate(lines, 1):
        text = text.strip("\ufeff \t\r\n\0")
        if not text or text[0] in ";#":
            found = _HEADER.match(text)
            if found:
                header.setdefault(found[1], found[2])
            continue
        job = _job(text, name, count)
        if isinstance(job, str):
            skipped[job] += 1
        else:
            jobs.append(job)
    jobs.sort(key=lambda job: (job.submit, job.line))
    return Trace(name, jobs, header, dict(skipped))


def _job(text: str, name: str, line: int) -> TraceJob | str:
    """The job of a line, or why it is left out."""
    words = text.split()
    if len(words) < FIELDS:
        raise TraceError(f"{name}:{line}: {len(words)} fields where a job has {FIELDS}: {_shown(text)}")
    number, submit, _, run, allocated, _, _, wanted, requested, _, _, user = [_number(word, name, line) for word in words[:_USED]]
    slots = allocated if allocated > 0 else wanted
    if submit < 0:
        return "unknown submit time"
    if run < 0:
        return "unknown run time"
    if slots <= 0:
        return "unknown size"
    if int(slots) != slots:
        raise TraceError(f"{name}:{line}: {slots} is no number of processors")
    return TraceJob(int(number), line, submit, run, int(slots), requested if requested > 0 else run, int(user))


def _number(word: str, name: str, line: int) -> float:
    """Whole numbers stay whole, so that times are exact."""
    try:
        number: float = int(word)
    except ValueError:
        try:
            number = float(word)
        except ValueError:
            number = math.nan
    # also false for nan
    if -_LARGEST < number < _LARGEST:
        return number
    raise TraceError(f"{name}:{line}: {_shown(word)} is not a number that can stand here")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "...")

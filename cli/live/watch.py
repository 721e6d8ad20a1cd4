"""``lava watch JOB``: a job at a terminal until it ends: its state, time and use, its ranks and the end of its output.

Of an array a progress bar, with how many elements wait, run, are done and have failed. Where stdout is no terminal it prints
a line whenever something has changed. It exits as the job does: 0 for DONE, else 1.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import NamedTuple

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.live.listings import WAITING, Row, harmless, hms, number, rows
from cli.live.output import end_of_output
from cli.live.screen import Line, Piece, Screen, bar, has_colours
from proto.numbers import find_seconds

USAGE = "Usage: lava watch [-d seconds] job_ID | job_ID[index]"
_JOB = re.compile(r"[0-9]+(\[[0-9]+\])?")
_FIELDS = "jobid jobindex stat user queue slots exec_host run_time cpu_used mem max_mem time_left pend_reason exit_code job_name"
_OVER = ("DONE", "EXIT")
_BAR = 40
_TAIL = 12
"""Lines of output."""
_RANKS = re.compile(r"^ TASK USAGE:\n((?: .*\n)+)", re.MULTILINE)
_COUNTS = ("NJOBS", "PEND", "DONE", "RUN", "EXIT", "SSUSP", "USUSP", "PSUSP")


class Array(NamedTuple):
    """How many elements are in which state."""

    total: int
    pending: int
    done: int
    running: int
    exited: int
    suspended: int

    @property
    def over(self) -> int:
        return self.done + self.exited


class Pace:
    """How fast elements end, by what was seen since the watch began."""

    def __init__(self) -> None:
        self._first: tuple[float, int] | None = None

    def left(self, array: Array, now: float) -> float | None:
        """Seconds until all are over, if they go on to end as since the first look; None: not known yet."""
        if self._first is None:
            self._first = now, array.over
        since, before = self._first
        ended = array.over - before
        return (array.total - array.over) * (now - since) / ended if ended > 0 and now > since else None


def read_array(text: str) -> Array | None:
    """The counts of ``bjobs -A``; None where it has no array."""
    lines = text.splitlines()
    if len(lines) < 2:
        return None
    values = [int(word) for word in lines[1].split()[-len(_COUNTS) :] if word.isdigit()]
    if len(values) != len(_COUNTS):
        return None
    count = dict(zip(_COUNTS, values, strict=True))
    suspended = count["SSUSP"] + count["USUSP"] + count["PSUSP"]
    return Array(count["NJOBS"], count["PEND"], count["DONE"], count["RUN"], count["EXIT"], suspended)


def array_line(array: Array, left: float | None) -> Line:
    """``[#####    ]  12/40  3 run, 25 wait, 10 done, 2 failed  about 00:03:10 left``"""
    rest = f"  about {hms(left)} left" if left is not None and array.over < array.total else ""
    held = f", {array.suspended} suspended" if array.suspended else ""
    return [
        Piece(bar(array.over / array.total if array.total else 0.0, _BAR), "good" if not array.exited else "warn"),
        Piece(f"  {array.over}/{array.total}  {array.running} run, {array.pending} wait{held}, {array.done} done, "),
        Piece(f"{array.exited} failed", "bad" if array.exited else ""),
        Piece(rest),
    ]


def job_lines(row: Row) -> list[Line]:
    """What a job is doing."""
    index = row["JOBINDEX"]
    name = f"{row['JOBID']}[{index}]" if number(index) else row["JOBID"]
    state = row["STAT"]
    style = {"RUN": "good", "DONE": "good", "EXIT": "bad", "PEND": "warn"}.get(state, "warn")
    code = f" with exit code {row['EXIT_CODE']}" if state == "EXIT" and row["EXIT_CODE"] else ""
    lines: list[Line] = [
        [
            Piece(f"Job {name} ", "bold"),
            Piece(f"{state}{code}", style),
            Piece(f"   {row['JOB_NAME']}   queue {row['QUEUE']}, {row['USER']}"),
        ]
    ]
    if state in WAITING:
        return [*lines, [Piece(f"waits: {row['PEND_REASON'].rstrip('; ')}", "dim")]]
    if not row["EXEC_HOST"]:
        return lines  # it was killed before it had a host
    hosts = dict.fromkeys(row["EXEC_HOST"].split(":"))
    ran, left = number(row["RUN_TIME"]), row["TIME_LEFT"]
    used = f"CPU {hms(number(row['CPU_USED']))}   memory {row['MEM'] or '-'}, peak {row['MAX_MEM'] or '-'}"
    lines.append([Piece(f"{row['SLOTS']} slots on {', '.join(hosts)}   {used}")])
    rest = _seconds(left)
    if rest is not None and state not in _OVER:
        lines.append([Piece(f"{bar(ran / (ran + rest) if ran + rest else 0.0, _BAR)}  {hms(ran)} of {hms(ran + rest)}")])
    else:
        lines.append([Piece(f"ran {hms(ran)}")])
    return lines


def _seconds(text: str) -> float | None:
    """``0:12 L``: hours and minutes that are left; None where there is no limit."""
    found = re.match(r"(\d+):(\d+)", text)
    return None if found is None else (int(found[1]) * 60 + int(found[2])) * 60.0


class Watch:
    """One job or array, asked for again and again."""

    def __init__(self, context: Context, job: str) -> None:
        self.context = context
        self.job = job
        self.client = Client(context, read_conf(context))
        self.pace = Pace()
        self.is_array = "[" not in job and bool(self._array())
        if not self.is_array and not self._row():
            raise Fail(f"Job <{job}> is not found")

    def _text(self, command: str, **options: object) -> str:
        frame = {"ask": "query", "command": command, "options": options, "words": [self.job]}
        try:
            return self.client.text_of(frame, quiet=True)
        except Fail:
            return ""

    def _array(self) -> Array | None:
        return read_array(self._text("bjobs", A=True, a=True))

    def _row(self) -> Row | None:
        found = rows(self.client, "bjobs", _FIELDS, {"a": True}, [self.job])
        return found[0] if found else None

    def look(self, now: float) -> tuple[list[Line], int | None]:
        """(the first lines, the exit status once all is over)."""
        if self.is_array:
            array = self._array()
            if array is None:
                return [[Piece("it is no longer listed")]], 1
            status = None if array.over < array.total else int(array.exited > 0)
            return [[Piece(f"Array {self.job}", "bold")], array_line(array, self.pace.left(array, now))], status
        row = self._row()
        if row is None:
            return [[Piece("it is no longer listed")]], 1
        return job_lines(row), int(row["STAT"] != "DONE") if row["STAT"] in _OVER else None

    def ranks(self) -> list[Line]:
        """What each rank of a job uses, as bjobs -l shows it."""
        found = None if self.is_array else _RANKS.search(self._text("bjobs", l=True))
        lines = found[1].splitlines() if found is not None else []
        return [[], [Piece(lines[0], "head")], *([Piece(line)] for line in lines[1:])] if len(lines) > 2 else []

    def tail(self) -> list[Line]:
        """The last lines of its output."""
        if self.is_array:
            return []
        text = end_of_output(self.context, self.job)
        shown = [harmless(line.expandtabs()) for line in text.splitlines()[-_TAIL:]]
        return [[], [Piece("OUTPUT", "head")], *([Piece(line)] for line in shown)] if shown else []


def _changes(watch: Watch, period: float) -> Iterator[tuple[str, int | None]]:
    """A line whenever what it says has changed, and the status once all is over."""
    before = ""
    while True:
        lines, status = watch.look(time.time())
        texts = ["".join(piece.text for piece in line) for line in lines]
        line = re.sub(r"  about .* left$", "", texts[-1] if watch.is_array else texts[0])
        if line != before:
            yield f"{line}\n", None
        before = line
        if status is not None:
            yield "", status
            return
        time.sleep(period)


def _options(words: list[str]) -> tuple[float, str]:
    """(seconds between two looks, the job). Raises Fail."""
    period, job = 1.0, ""
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "-d" and left and (seconds := find_seconds(left[0])):
            period = seconds
            left.pop(0)
        elif not job and _JOB.fullmatch(word):
            job = word
        else:
            raise Fail(USAGE)
    if not job:
        raise Fail(USAGE)
    return period, job


def run(context: Context) -> int:
    """Until the job ends, ``q`` or Ctrl-C."""
    period, job = _options(context.argv)
    watch = Watch(context, job)
    if not has_colours({**context.environ, "NO_COLOR": ""}, context.stdout):
        status = 0
        for text, over in _changes(watch, period):
            context.out(text)
            status = over if over is not None else status
        return status
    lines: list[Line] = []
    ended: int | None = None
    with Screen(context.stdin, context.stdout, context.environ) as screen:
        while ended is None:
            lines, ended = watch.look(time.time())
            lines = [*lines, *watch.ranks(), *watch.tail()]
            screen.draw([*lines, [], [Piece("q quit (the job goes on)", "dim")]])
            if ended is None and screen.key(period) == "q":
                return 0
    context.out("".join("".join(piece.text for piece in line).rstrip() + "\n" for line in lines))
    return ended


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

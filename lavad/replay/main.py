"""`python -m lavad.replay --trace FILE …`: a trace simulated under one or more policies (`lava whatif`).

Exit 0; 1 with one line on stderr that names what was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import msgspec

from lavad.replay.measures import Measures, measure
from lavad.replay.plot import draw
from lavad.replay.simulate import POLICIES, simulate
from lavad.replay.swf import Trace, TraceError, TraceJob, read_trace

LARGER = "larger than the machine"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line, as every other complaint."""
        self.exit(1, f"{self.prog}: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = _Parser(
        prog="lava whatif", description="Simulate a job trace (Standard Workload Format) under scheduling policies.",
        allow_abbrev=False,
    )  # fmt: skip
    options.add_argument("--trace", required=True, metavar="FILE", help="the trace, plain or gzipped")
    options.add_argument("--hosts", type=_count, default=1, help="hosts of the machine (default 1)")
    options.add_argument("--add-hosts", type=_count, default=0, metavar="N", help="so many hosts more")
    options.add_argument("--slots", type=_count, default=0, help="slots of each host (default: what the trace names)")
    options.add_argument(
        "--policy", type=_policies, default=list(POLICIES), metavar="|".join(POLICIES), help="several: with commas; default all"
    )
    options.add_argument("--json", action="store_true", help="one JSON object")
    options.add_argument("--users", action="store_true", help="each user's figures too")
    options.add_argument("--plot", default="", metavar="FILE", help="write a picture (SVG)")
    return options


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:10]) <= 10_000_000 or len(text) > 8:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10000000")
    return int(text)


def _policies(text: str) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    for name in names:
        if name not in POLICIES:
            raise argparse.ArgumentTypeError(f"{name!r} is not a policy ({', '.join(POLICIES)})")
    return names


def main(argv: list[str] | None = None) -> int:
    """The program."""
    options = parser().parse_args(argv)
    try:
        sys.stdout.write(_report(options))
        sys.stdout.flush()
    except TraceError as error:
        sys.stderr.write(f"lava whatif: {error}\n")
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _report(options: argparse.Namespace) -> str:
    trace = read_trace(options.trace)
    slots = _slots(options, trace)
    jobs, skipped = _fitting(trace, slots)
    runs = {name: simulate(jobs, slots, name) for name in options.policy}
    measures = {name: measure(part, slots) for name, part in runs.items()}
    if options.plot:
        _write_plot(options.plot, draw(f"{os.path.basename(trace.name)} on {slots} slots", runs, slots))
    if options.json:
        return _json(options, trace, slots, skipped, measures)
    return _table(options, trace, slots, skipped, measures)


def _slots(options: argparse.Namespace, trace: Trace) -> int:
    each = int(options.slots) or trace.find_machine()
    if not each:
        raise TraceError(f"{trace.name}: names no machine (MaxProcs); say --slots")
    return int(options.hosts + options.add_hosts) * each


def _fitting(trace: Trace, slots: int) -> tuple[list[TraceJob], dict[str, int]]:
    """The jobs that the machine can hold, and how many are left out by reason."""
    jobs = [job for job in trace.jobs if job.slots <= slots]
    skipped = dict(trace.skipped)
    if len(jobs) < len(trace.jobs):
        skipped[LARGER] = len(trace.jobs) - len(jobs)
    if not jobs:
        raise TraceError(f"{trace.name}: no job to simulate" + (f" ({_listed(skipped)})" if skipped else ""))
    return jobs, skipped


def _listed(skipped: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in skipped.items())


def _write_plot(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: cannot write the plot: {getattr(error, 'strerror', error)}") from None


def _json(options: argparse.Namespace, trace: Trace, slots: int, skipped: dict[str, int], measures: dict[str, Measures]) -> str:
    shared: dict[str, Any] = {
        "trace": trace.name, "hosts": options.hosts + options.add_hosts, "slots": slots, "skipped": skipped,
    }  # fmt: skip
    objects = []
    for name, figures in measures.items():
        fields = msgspec.to_builtins(figures)
        fields["users"] = fields["users"] if options.users else len(fields["users"])
        objects.append({"policy": name, **fields})
    whole = shared | (objects[0] if len(objects) == 1 else {"policies": objects})
    return json.dumps(whole) + "\n"


_ROWS: tuple[tuple[str, Callable[[Measures], str]], ...] = (
    ("jobs", lambda m: f"{m.jobs}"),
    ("mean wait (s)", lambda m: f"{m.mean_wait:.1f}"),
    ("median wait", lambda m: f"{m.wait_percentiles['50']:.1f}"),
    ("wait 95 %", lambda m: f"{m.wait_percentiles['95']:.1f}"),
    ("longest wait", lambda m: f"{m.wait_percentiles['100']:.1f}"),
    ("mean bounded slowdown", lambda m: f"{m.mean_bounded_slowdown:.2f}"),
    ("bounded slowdown 95 %", lambda m: f"{m.bounded_slowdown_percentiles['95']:.2f}"),
    ("utilization", lambda m: f"{100 * m.utilization:.2f} %"),
    ("makespan (s)", lambda m: f"{m.makespan:.0f}"),
    ("fairness over users", lambda m: f"{m.fairness:.3f}"),
)


def _table(options: argparse.Namespace, trace: Trace, slots: int, skipped: dict[str, int], measures: dict[str, Measures]) -> str:
    hosts = options.hosts + options.add_hosts
    lines = [f"{trace.name}: {hosts} host{'s' * (hosts > 1)}, {slots} slots in all"]
    if skipped:
        lines.append("left out: " + _listed(skipped))
    lines.append(f"{'':24}" + "".join(f"{name:>16}" for name in measures))
    for label, shown in _ROWS:
        lines.append(f"{label:24}" + "".join(f"{shown(figures):>16}" for figures in measures.values()))
    if options.users:
        lines += _user_lines(measures)
    return "\n".join(lines) + "\n"


def _user_lines(measures: dict[str, Measures]) -> list[str]:
    """Mean wait and mean bounded slowdown of each user."""
    lines = ["", "mean wait / mean bounded slowdown by user"]
    for rows in zip(*(figures.users for figures in measures.values()), strict=True):
        cells = (f"{f'{row.mean_wait:.0f} / {row.mean_bounded_slowdown:.1f}':>16}" for row in rows)
        lines.append(f"{f'{rows[0].user} ({rows[0].jobs} jobs)':24}" + "".join(cells))
    return lines

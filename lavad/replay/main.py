"""`lava whatif`: a trace simulated under policies (``--trace``), or a cluster's history, or its live jobs, under changes.

Exit 0; 1 with one line on stderr that names what was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys

from lavad.progress import Progress, Tell
from lavad.replay import compare
from lavad.replay.changes import POLICIES as CLUSTER_POLICIES
from lavad.replay.changes import ChangeError
from lavad.replay.history import HistoryError, Parser, add_source
from lavad.replay.measures import Measures, fields, measure, table
from lavad.replay.plot import draw
from lavad.replay.simulate import POLICIES, simulate
from lavad.replay.swf import Trace, TraceError, TraceJob, read_trace
from lavad.store.errors import StoreError

LARGER = "larger than the machine"
_TRACE_ONLY = ("hosts",)
_CLUSTER_ONLY = ("history", "live", "remove_hosts", "like", "queue_priority", "config", "dir", "database")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = Parser(
        prog="lava whatif",
        allow_abbrev=False,
        description="Simulate a job trace (--trace), or a cluster's recorded history or live jobs (--live), under changes.",
    )
    options.add_argument("--trace", default="", metavar="FILE", help="a trace (Standard Workload Format), plain or gzipped")
    options.add_argument("--hosts", type=_count, default=0, help="hosts of the machine of a trace (default 1)")
    options.add_argument("--add-hosts", type=_count, default=0, metavar="N", help="so many hosts more")
    options.add_argument("--slots", type=_count, default=0, help="slots of each host of a trace, or of each added host")
    options.add_argument(
        "--policy",
        type=_words,
        default=[],
        metavar="P[,P]",
        help=f"of a trace: {', '.join(POLICIES)} (default all); else {', '.join(CLUSTER_POLICIES)} (default: as configured)",
    )
    options.add_argument("--history", default="", metavar="FILE", help="a history written by lava replay --export")
    options.add_argument("--live", action="store_true", help="the jobs that are there now, instead of those that have ended")
    options.add_argument("--remove-hosts", type=_words, default=[], metavar="H[,H]", help="hosts that are not there")
    options.add_argument("--like", default="", metavar="HOST", help="the host that added ones are like")
    options.add_argument(
        "--queue-priority", type=_priority, action="append", default=[], metavar="QUEUE=N", help="another priority of a queue"
    )
    options.add_argument("--config", type=_folder, default="", metavar="DIR", help="another configuration")
    options.add_argument("--json", action="store_true", help="one JSON object")
    options.add_argument("--users", action="store_true", help="each user's figures too")
    options.add_argument("--plot", default="", metavar="FILE", help="write a picture (SVG)")
    add_source(options)
    return options


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:10]) <= 10_000_000 or len(text) > 8:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 10000000")
    return int(text)


def _words(text: str) -> list[str]:
    return [word for word in dict.fromkeys(text.replace(",", " ").split()) if word]


def _folder(text: str) -> str:
    if text and not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    return text


def _priority(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not number.isascii() or not number.isdecimal() or not 1 <= int(number[:10]) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not QUEUE=PRIORITY")
    return name, int(number)


def main(argv: list[str] | None = None) -> int:
    """The program."""
    options = parser().parse_args(argv)
    try:
        _check(options)
        with Progress("lava whatif") as progress:
            text = _trace_report(options, progress.tell) if options.trace else compare.report(options, progress.tell)
        sys.stdout.write(text)
        sys.stdout.flush()
    except (TraceError, ChangeError, HistoryError, StoreError) as error:
        sys.stderr.write(f"lava whatif: {error}\n")
        return 1
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        sys.stderr.write(f"lava whatif: {error.filename or ''}: {error.strerror or error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse combinations of options that exclude each other."""
    known = POLICIES if options.trace else CLUSTER_POLICIES
    for name in options.policy:
        if name not in known:
            raise ChangeError(f"argument --policy: {name!r} is not a policy ({', '.join(known)})")
    for name in _CLUSTER_ONLY if options.trace else _TRACE_ONLY:
        if getattr(options, name):
            which = "not with --trace" if options.trace else "only with --trace"
            raise ChangeError(f"argument --{name.replace('_', '-')}: {which}")


def _trace_report(options: argparse.Namespace, tell: Tell) -> str:
    options.hosts = options.hosts or 1
    trace = read_trace(options.trace)
    slots = _slots(options, trace)
    jobs, skipped = _fitting(trace, slots)
    runs = {}
    for name in options.policy or POLICIES:
        tell(f"simulating {len(jobs)} jobs under {name}", 0, 0)
        runs[name] = simulate(jobs, slots, name)
    measures = {name: measure(part, slots) for name, part in runs.items()}
    if options.plot:
        compare.write_plot(options.plot, draw(f"{os.path.basename(trace.name)} on {slots} slots", runs, slots))
    if options.json:
        return _json(options, trace, slots, skipped, measures)
    return _text(options, trace, slots, skipped, measures)


def _slots(options: argparse.Namespace, trace: Trace) -> int:
    each = int(options.slots) or trace.find_machine()
    if not each:
        raise TraceError(f"{trace.name}: names no machine (MaxProcs); say --slots")
    return int(options.hosts + options.add_hosts) * each


def _fitting(trace: Trace, slots: int) -> tuple[list[TraceJob], dict[str, int]]:
    """(jobs that fit on the machine, reason to number of jobs left out)."""
    jobs = [job for job in trace.jobs if job.slots <= slots]
    skipped = dict(trace.skipped)
    if len(jobs) < len(trace.jobs):
        skipped[LARGER] = len(trace.jobs) - len(jobs)
    if not jobs:
        raise TraceError(f"{trace.name}: no job to simulate" + (f" ({_listed(skipped)})" if skipped else ""))
    return jobs, skipped


def _listed(skipped: dict[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in skipped.items())


def _json(options: argparse.Namespace, trace: Trace, slots: int, skipped: dict[str, int], measures: dict[str, Measures]) -> str:
    shared: dict[str, object] = {
        "trace": trace.name,
        "hosts": options.hosts + options.add_hosts,
        "slots": slots,
        "skipped": skipped,
    }
    objects = [{"policy": name, **fields(figures, options.users)} for name, figures in measures.items()]
    whole = shared | (objects[0] if len(objects) == 1 else {"policies": objects})
    return json.dumps(whole) + "\n"


def _text(options: argparse.Namespace, trace: Trace, slots: int, skipped: dict[str, int], measures: dict[str, Measures]) -> str:
    hosts = options.hosts + options.add_hosts
    lines = [f"{trace.name}: {hosts} host{'s' * (hosts > 1)}, {slots} slots in all"]
    if skipped:
        lines.append("left out: " + _listed(skipped))
    return "\n".join([*lines, *table(measures, options.users)]) + "\n"

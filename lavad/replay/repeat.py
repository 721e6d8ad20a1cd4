"""`lava replay`: makes the recorded decisions of a cluster again and reports whether they are the same.

Exit 0: all equal; 1: something differs, or one line on stderr says what was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys

import msgspec

from lavad.local_time import local_time
from lavad.progress import Progress, counted
from lavad.replay.again import Difference, Outcome, Replay
from lavad.replay.history import HistoryError, Parser, add_source, read_source, write
from lavad.store.errors import StoreError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = Parser(
        prog="lava replay",
        allow_abbrev=False,
        description="Make a cluster's recorded scheduling decisions again on a virtual clock, and compare.",
    )
    options.add_argument("file", nargs="?", default="", help="a history written by --export (default: the cluster's store)")
    add_source(options)
    options.add_argument("--export", default="", metavar="FILE", help="only write the history to FILE (.gz: packed)")
    options.add_argument("--forgetful", action="store_true", help="with an empty cache for each plan: slower, finds stale caches")
    options.add_argument("--json", action="store_true", help="one JSON object")
    return options


def main(argv: list[str] | None = None) -> int:
    """The program."""
    options = parser().parse_args(argv)
    try:
        with Progress("lava replay") as progress:
            items = counted(read_source(options, options.file), progress.tell, "events and plans")
            count = write(options.export, items) if options.export else 0
            outcome = Outcome() if options.export else Replay(options.forgetful).run(items)
        if options.export:
            sys.stdout.write(f"{options.export}: {count} lines\n")
            return 0
        sys.stdout.write(_json(outcome) if options.json else _text(outcome))
        sys.stdout.flush()
    except (HistoryError, StoreError, OSError) as error:
        sys.stderr.write(f"lava replay: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0 if outcome.equal == outcome.plans else 1


def _json(outcome: Outcome) -> str:
    return json.dumps(msgspec.to_builtins(outcome)) + "\n"


def _text(outcome: Outcome) -> str:
    lines = [f"{outcome.events} events, {outcome.plans} recorded plans"]
    if outcome.before:
        lines.append(f"{outcome.before} starts are older than what is recorded, and were taken as they were")
    if outcome.decisions:
        lines.append("decided: " + ", ".join(f"{count} {kind}" for kind, count in outcome.decisions.most_common()))
    lines.append(f"equal: {outcome.equal} of {outcome.plans} plans")
    if outcome.first is not None:
        lines += _difference(outcome.first)
    return "\n".join(lines) + "\n"


def _difference(first: Difference) -> list[str]:
    at = local_time(first.now).strftime("%b %d %H:%M:%S")
    lines = [f"first difference: the plan made on version {first.version} ({at})"]
    if not first.recorded and not first.replayed:
        return [*lines, "  what was accepted of it is equal, what was not differs"]
    return [*lines, f"  recorded: {first.recorded or 'nothing more'}", f"  replayed: {first.replayed or 'nothing more'}"]

"""bwait: wait until a dependency condition is met."""

from __future__ import annotations

import time

from cli.client.client import Client, read_conf
from cli.client.context import LSF_FAILED, Context, Fail, start
from cli.client.options import read_argv, table_of
from proto.numbers import find_number

LOOK = 0.5
LONGEST_LOOK = 10.0


def run(context: Context) -> int:
    """0 once the condition is met; 255 when it can never be met, or after ``-t`` minutes."""
    table = table_of("bwait")
    options, _ = read_argv(context, table, 0, 0)
    condition = options.get("w")
    if not isinstance(condition, str):
        raise Fail(table.usage())
    until = time.monotonic() + 60 * _minutes(str(options["t"])) if "t" in options else None
    every = 60.0 * _minutes(str(options["r"])) if "r" in options else LONGEST_LOOK
    client = Client(context, read_conf(context))
    pause = min(LOOK, every)
    while True:
        stands = client.ask({"ask": "judge", "condition": condition}).get("stands")
        if stands:
            return 0
        if stands is None:
            context.err(f"Wait condition <{condition}> can never be satisfied\n")
            return LSF_FAILED
        left = until - time.monotonic() if until is not None else pause
        if left <= 0:
            context.err(f"Wait condition <{condition}> is not satisfied: the time is over\n")
            return LSF_FAILED
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, every)


def _minutes(text: str) -> int:
    if (minutes := find_number(text, 1, 10**6 - 1)) is None:
        raise Fail(f"{text}: Bad time specification")
    return minutes


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

"""brsvadd: add an advance reservation."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of
from cli.control.control import change
from cli.control.values import slot_count, text


def run(context: Context) -> int:
    """Add the reservation and print its name."""
    table = table_of("brsvadd")
    options, _ = read_argv(context, table, 0, 0)
    if ("s" in options) == bool({"u", "g"} & options.keys()):
        raise Fail(table.usage())
    unit = text(options, "unit") or "slot"
    if unit not in ("slot", "host"):
        raise Fail(f"brsvadd: {unit}: Bad unit, it is slot or host")
    frame = {
        "ask": "addreservation",
        "slots": slot_count(options, "brsvadd"),
        "unit": unit,
        "hosts": text(options, "m"),
        "resreq": text(options, "R"),
        "users": text(options, "u"),
        "group": text(options, "g"),
        "system": "s" in options,
        "begin": text(options, "b"),
        "end": text(options, "e"),
        "window": text(options, "t"),
        "open": "o" in options,
        "name": text(options, "N"),
        "no_suspend": "nosusp" in options,
        "queues": text(options, "q"),
        "description": text(options, "d"),
    }
    name = change(context, "brsvadd", frame)["name"]
    context.out(f'Reservation "{name}" is created\n')
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

"""brsvdel: delete advance reservations."""

from __future__ import annotations

from cli.client.context import Context, Fail, Refused, start
from cli.client.options import read_letters, show_help, table_of
from cli.control.control import change


def run(context: Context) -> int:
    """Delete each; with ``-f`` even while jobs run in it."""
    table = table_of("brsvdel")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if not words:
        raise Fail(table.usage())
    status = 0
    for name in words:
        try:
            change(context, "brsvdel", {"ask": "dropreservation", "name": name, "force": "f" in options})
        except Refused as refused:
            context.err(f"{refused.text}\n")
            status = refused.status
            continue
        context.out(f"Reservation {name} is being deleted\n")
    return status


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

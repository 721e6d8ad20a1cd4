"""brsvdel: delete advance reservations."""

from __future__ import annotations

from cli.client.context import Context, Refused, start
from cli.client.options import read_argv, table_of
from cli.control.control import change


def run(context: Context) -> int:
    """Delete each; with ``-f`` even while jobs run in it."""
    options, words = read_argv(context, table_of("brsvdel"), 1)
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

"""bgadd: add a job group."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, start
from cli.client.fail import Fail, Refused
from cli.options.options import Table, read_letters, show_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.options.options import Options


def run(context: Context) -> int:
    """Add it, with the groups above it that are missing."""
    table = Table("bgadd", "", "L sla", "job_group_name", refused="sla")
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if len(words) != 1:
        raise Fail(table.usage())
    frame = {"ask": "addgroup", "group": words[0], "limit": read_limit(options, table)}
    change(context, "bgadd", frame)
    context.out(f"Group {words[0]} added successfully.\n")
    return 0


def read_limit(options: Options, table: Table) -> int | None:
    """The number of -L; None where it is not given."""
    value = options.get("L")
    if not isinstance(value, str):
        return None
    if not (value.isascii() and value.isdigit() and int(value) < 2**31):
        raise Fail(f"{table.command}: {value}: Bad job group limit.\n{table.usage()}")
    return int(value)


def change(context: Context, command: str, frame: dict[str, Any]) -> dict[str, Any]:
    """Ask; a refusal is told with the command's name before it."""
    try:
        return Client(context, read_conf(context)).change(frame)
    except Refused as refused:
        raise Refused(f"{command}: {refused.text}", refused.status) from None


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

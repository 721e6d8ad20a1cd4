"""A command that only shows: its options and words go to the master, which knows them and renders the text."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.options.options import Table, read_letters, show_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.client.context import Context
    from cli.options.options import Options

BATCH = "lsb_init: Failed in an LSF library call"
BASE = "ls_initdebug"


def run_listing(
    context: Context,
    table: Table,
    help_status: int = 255,
    caller: str = BATCH,
    form: str = "",
    change: Callable[[Context, Options, list[str]], None] | None = None,
) -> int:
    """``form``: the variable of the environment that sets the default columns; the master knows when it counts.

    ``change`` does to the options what only this host can, as reading a file.
    """
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options, help_status)
    if helped is not None:
        return helped
    conf = read_conf(context, caller)
    if change is not None:
        change(context, options, words)
    columns = context.environ.get(form)
    if columns:
        options[form] = columns
    frame = {"ask": "query", "command": table.command, "options": options, "words": words}
    return Client(context, conf).query(frame)

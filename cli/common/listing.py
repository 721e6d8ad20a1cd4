"""A command that only shows: its options and words go to the master, which knows them and renders the text."""

from __future__ import annotations

from cli.common.client import Client, read_conf
from cli.common.options import Table, read_letters, show_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.context import Context

BATCH = "lsb_init: Failed in an LSF library call"
BASE = "ls_initdebug"


def run_listing(context: Context, table: Table, help_status: int = 255, caller: str = BATCH, form: str = "") -> int:
    """``form``: the variable of the environment that sets the default columns; the master knows when it counts."""
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options, help_status)
    if helped is not None:
        return helped
    conf = read_conf(context, caller)
    columns = context.environ.get(form)
    if columns:
        options[form] = columns
    frame = {"ask": "query", "command": table.command, "options": options, "words": words}
    return Client(context, conf).query(frame)

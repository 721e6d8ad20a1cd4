"""A command that only shows: its options and words go to the master, which knows them and renders the text."""

from __future__ import annotations

from cli.common.client import Client, read_conf
from cli.common.options import Table, read_letters, show_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.context import Context
    from cli.common.options import Options

BATCH = "lsb_init: Failed in an LSF library call"
BASE = "ls_initdebug"


def run_listing(
    context: Context,
    table: Table,
    help_status: int = 255,
    caller: str = BATCH,
    form: tuple[str, str] = ("", ""),
) -> int:
    """``form``: the parameter that sets the default columns, and the options that make it count for nothing."""
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options, help_status)
    if helped is not None:
        return helped
    conf = read_conf(context, caller)
    _default_format(context, conf, options, *form)
    frame = {"ask": "query", "command": table.command, "options": options, "words": words}
    return Client(context, conf).query(frame)


def _default_format(context: Context, conf: dict[str, str], options: Options, parameter: str, unless: str) -> None:
    """LSB_BJOBS_FORMAT and its like: the environment's before the site's, ``-o`` before both."""
    if not parameter or "o" in options or any(name in options for name in unless.split()):
        return
    wish = context.environ.get(parameter) or conf.get(parameter)
    if wish:
        options["o"] = wish

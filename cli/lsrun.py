"""lsrun: run a task on a well placed host now, as if it ran here. It is an interactive job of one slot, without its messages."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import read_command_options, show_help, table_of
from cli.terminal.remote_task import chosen_hosts, run_task

TABLE = table_of("lsrun")


def run(context: Context) -> int:
    """Run the task; its exit code. Raises Fail."""
    options, words = read_command_options(TABLE, context.argv)
    helped = show_help(context, TABLE, options)
    if helped is not None:
        return helped
    if not words:
        raise Fail(TABLE.usage())
    wishes = {name: value for name, value in options.items() if name in ("m", "R")}
    if "R" in options and "m" not in options:
        chosen_hosts(context, "lsrun", str(options["R"]), "1")  # a task that no host suits would wait for ever
    return run_task(context, "lsrun", words, wishes, _mode(options), "v" in options)


def _mode(options: dict[str, str | bool | list[str]]) -> str:
    return "Is" if "S" in options else "Ip" if "P" in options else "I"


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

"""lsrun: run a task on a well placed host now, as if it ran here. It is an interactive job of one slot, without its messages."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.client.options import read_argv, read_command_options, table_of
from cli.terminal.remote_task import chosen_hosts, run_task


def run(context: Context) -> int:
    """Run the task; its exit code. Raises Fail."""
    options, words = read_argv(context, table_of("lsrun"), 1, read=read_command_options)
    wishes = {name: value for name, value in options.items() if name in ("m", "R")}
    if "R" in options and "m" not in options:
        chosen_hosts(context, "lsrun", str(options["R"]), "1")  # a task that no host suits would wait for ever
    return run_task(context, "lsrun", words, wishes, _mode(options), "v" in options)


def _mode(options: dict[str, str | bool | list[str]]) -> str:
    return "Is" if "S" in options else "Ip" if "P" in options else "I"


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

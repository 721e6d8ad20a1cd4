"""bstop: suspend jobs."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.control.control import run_control, with_reason
from cli.options.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.options.options import Options


def _frame(options: Options, words: list[str]) -> dict[str, Any]:
    if "a" in options and not words:
        words.append("0")
    return with_reason({"ask": "stop"}, options)


def run(context: Context) -> int:
    """Do it to what is selected."""
    table = Table("bstop", "a d", "J q u m g app C N sla", "[job_ID | 0 | job_ID[index_list]] ...", refused="d N sla")
    return run_control(context, table, _frame, "Job <%s> is being stopped")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

"""bresume: let suspended jobs go on."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.control.control import run_control, with_reason
from cli.options.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.options.options import Options


def _frame(options: Options, words: list[str]) -> dict[str, Any]:
    return with_reason({"ask": "resume"}, options)


def run(context: Context) -> int:
    """Do it to what is selected."""
    table = Table("bresume", "", "J q u m g app C sla", "[job_ID | 0 | job_ID[index_list]] ...", refused="sla")
    return run_control(context, table, _frame, "Job <%s> is being resumed")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

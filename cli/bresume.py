"""bresume: resume suspended jobs."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.control.control import run_control, with_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.options.options import Options


def _frame(options: Options, words: list[str]) -> dict[str, Any]:
    return with_reason({"ask": "resume"}, options)


def run(context: Context) -> int:
    return run_control(context, "bresume", _frame, "Job <%s> is being resumed")


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

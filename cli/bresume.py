"""bresume: resume suspended jobs."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.control.control import run_control, with_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options


def _frame(options: Options, words: list[str]) -> Frame:
    return with_reason({"ask": "resume"}, options)


def run(context: Context) -> int:
    return run_control(context, "bresume", _frame, "Job <%s> is being resumed")


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

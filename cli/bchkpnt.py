"""bchkpnt: checkpoint jobs."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.control.control import run_control

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options


def _frame(options: Options, words: list[str]) -> Frame:
    return {"ask": "checkpoint", "kill": "k" in options, "force": "f" in options, "period": minutes(options.get("p"))}


def minutes(value: object) -> int:
    """The period of ``-p`` in minutes: -1 leaves it as it is, 0 ends periodic checkpoints. Raises Fail."""
    if value is None:
        return -1
    hours, colon, rest = str(value).rpartition(":")
    numbers = (rest, hours) if colon else (rest,)
    # no more digits than a number of the ask has
    if not all(number.isascii() and number.isdigit() and len(number) < 8 for number in numbers):
        raise Fail(f"{value}: Illegal checkpoint period")
    return int(hours or 0) * 60 + int(rest)


def run(context: Context) -> int:
    return run_control(context, "bchkpnt", _frame, "Job <%s> is being checkpointed")


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

"""brequeue: end jobs and queue them again under their ids."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.control.control import run_control, with_reason
from cli.control.selection import Wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options


STATES = (
    ("d", ("DONE",)),
    ("e", ("EXIT",)),
    ("r", ("RUN",)),
    ("a", ("RUN", "USUSP", "SSUSP", "PSUSP", "UNKWN", "DONE", "EXIT")),
)


def _frame(options: Options, words: list[str]) -> Frame:
    states = dict.fromkeys(state for option, names in STATES if option in options for state in names)
    return with_reason({"ask": "requeue", "hold": "H" in options, "states": list(states)}, options)


def run(context: Context) -> int:
    return run_control(context, "brequeue", _frame, "Job <%s> is being requeued ", Wording(colon=" :"))


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

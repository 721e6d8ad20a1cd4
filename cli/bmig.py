"""bmig: move running jobs to other hosts."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.control.control import run_control
from cli.control.selection import Wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options


def _frame(options: Options, words: list[str]) -> Frame:
    hosts = options.pop("m", "")
    return {"ask": "migrate", "hosts": str(hosts).split(), "force": "f" in options}


def run(context: Context) -> int:
    return run_control(context, "bmig", _frame, "Job <%s> is being migrated", Wording(harmless=("Job has not started yet",)))


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

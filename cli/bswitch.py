"""bswitch: put jobs into another queue."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.client.fail import Fail
from cli.control.control import run_control
from cli.control.selection import Said
from cli.options.options import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.options.options import Options


def run(context: Context) -> int:
    """Switch what is selected."""
    table = Table("bswitch", "", "J q u m g app a", "queue_name [job_ID | 0 | job_ID[index_list]] ...")
    queue: list[str] = []

    def frame(options: Options, words: list[str]) -> dict[str, Any]:
        if not words:
            raise Fail(table.usage())
        queue.append(words.pop(0))
        profile = options.pop("a", None)
        if profile is not None:
            options["app"] = profile
        return {"ask": "switch", "queue": queue[0]}

    return run_control(context, table, frame, lambda job: f"Job <{job}> is switched to queue <{queue[0]}>", Said(alone=queue))


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

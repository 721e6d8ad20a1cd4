"""bswitch: move jobs to another queue."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import table_of
from cli.control.control import run_control
from cli.control.selection import Wording

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options


def run(context: Context) -> int:
    queue: list[str] = []

    def frame(options: Options, words: list[str]) -> Frame:
        if not words:
            raise Fail(table_of("bswitch").usage())
        queue.append(words.pop(0))
        profile = options.pop("a", None)
        if profile is not None:
            options["app"] = profile
        return {"ask": "switch", "queue": queue[0]}

    return run_control(
        context, "bswitch", frame, lambda job: f"Job <{job}> is switched to queue <{queue[0]}>", Wording(alone=queue)
    )


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

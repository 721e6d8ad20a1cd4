"""One change: to the jobs that the options select, with a line for each, or to one thing that is named."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Refused
from cli.client.options import read_argv, table_of
from cli.control.selection import report, selected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cli.client.frames import Frame
    from cli.client.options import Options
    from cli.control.selection import Wording
    from proto.answers import Answer

NEEDED = "Job ID or one of '-m', '-u' '-q' -'g' and '-J' must be specified"


def with_reason(frame: Frame, options: Options) -> Frame:
    """The ask with the reason of ``-C``."""
    reason = options.get("C")
    return {**frame, "reason": reason} if isinstance(reason, str) else frame


def run_control(
    context: Context,
    command: str,
    frame: Callable[[Options, list[str]], Frame],
    done: str | Callable[[str], str],
    wording: Wording | None = None,
) -> int:
    """Read the options, ask, and print a line for each job; the exit status.

    ``frame`` makes the ask without its jobs, and may take words off the list. ``done`` is the line for a job that it was done
    to, with %s for its id, or makes that line.
    """
    table = table_of(command)
    options, words = read_argv(context, table)
    asked = frame(options, words)
    select = selected(options, words, table, NEEDED)
    ok = Client(context, read_conf(context)).change({**asked, "jobs": select})
    return report(context, ok, select, done if callable(done) else lambda job: done % job, wording)


def change(context: Context, command: str, frame: Mapping[str, object]) -> Answer:
    """Ask for a change; the answer. Raises Refused with the command's name in front."""
    try:
        return Client(context, read_conf(context)).change(frame)
    except Refused as refused:
        raise Refused(f"{command}: {refused.text}", refused.status) from None

"""btop and bbot: move a job to a position in its queue."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, Refused
from cli.client.options import read_argv, table_of
from cli.control.selection import check_id
from proto.numbers import find_number


def run_place(context: Context, command: str, top: bool) -> int:
    """Move the job and print the position, as LSF does on stderr; the exit status."""
    options, words = read_argv(context, table_of(command), 1, 2)
    job = check_id(words[0])
    place = find_number(words[1], 1) if len(words) == 2 else 1
    if place is None:
        raise Fail(f"{words[1]}: Position value must be a positive integer.")
    frame = {"ask": "move", "job": job, "top": top, "place": place}
    if "u" in options:
        frame["own"] = True
    try:
        ok = Client(context, read_conf(context)).change(frame)
    except Refused as refused:
        named = refused.text.startswith(f"{job}:")
        raise Refused(refused.text if named else f"{job}: {refused.text}", refused.status) from None
    end = "top" if top else "bottom"
    context.err(f"Job <{ok.get('job', job)}> has been moved to position {ok.get('place', place)} from {end}.\n")
    return 0

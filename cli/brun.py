"""brun: force a pending job to run now."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Refused, start
from cli.client.options import read_argv, table_of
from cli.control.selection import check_id


def run(context: Context) -> int:
    """Force the job. ``-c`` needs nothing: slots are taken from what is free on each host anyway."""
    options, words = read_argv(context, table_of("brun"), 1, 1)
    job = check_id(words[0])
    frame = {"ask": "run", "job": job, "hosts": str(options.get("m", "")).split(), "force": "f" in options}
    if "b" in options:
        frame["afresh"] = True
    try:
        Client(context, read_conf(context)).change(frame)
    except Refused as refused:
        raise Refused(f"Failed to run the job: {refused.text.removeprefix(f'{job}: ')}", refused.status) from None
    context.out(f"Job <{job}> is being forced to run.\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

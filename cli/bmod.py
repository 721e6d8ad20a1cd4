"""bmod: change the options or the command of a job."""

from __future__ import annotations

from cli.common.client import Client, read_conf
from cli.common.context import Context, start
from cli.common.fail import Fail
from cli.common.jobs import check_id
from cli.common.options import read_command_options, show_help
from cli.common.script import Work
from cli.common.submission import check_options, not_done, site_of
from cli.common.submit_options import bmod_table, last_rival

NOT_MODIFIED = "Job not modified."


def run(context: Context) -> int:
    """Ask for the change."""
    table = bmod_table()
    try:
        options, words = read_command_options(table, context.argv)
    except Fail as fail:
        raise not_done(context, fail, "bmod", NOT_MODIFIED) from None
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if len(words) != 1:
        raise Fail(table.usage())
    job = check_id(words[0])
    conf = read_conf(context)
    try:
        command = options.pop("Z", None)
        work = Work(command) if isinstance(command, str) else None
        options = last_rival(options)
        site = site_of(context, conf, "bmod")
        if site is not None:
            site.check(work, options, {})
        check_options(options)
        frame = {"ask": "modify", "job": job, "options": options, "command": work.command if work else ""}
        ok = Client(context, conf).change(frame)
    except Fail as fail:
        raise not_done(context, fail, "bmod", NOT_MODIFIED) from None
    context.out(f"Parameters of job <{ok.get('job', job)}> are being changed\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

"""bmod: change the options or the command of a job."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_command_options, show_help
from cli.control.selection import check_id
from cli.submit.directives import words_of
from cli.submit.local_inputs import add_local_inputs
from cli.submit.script import Work, find_work
from cli.submit.submission import check_options, not_done, site_of
from cli.submit.submit_options import bmod_table, last_rival

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options

NOT_MODIFIED = "Job not modified."


def run(context: Context) -> int:
    table = bmod_table()
    try:
        options, words = read_command_options(table, context.argv)
    except Fail as fail:
        raise not_done(context, fail, "bmod", NOT_MODIFIED) from None
    show_help(context, table, options)
    if len(words) != 1:
        raise Fail(table.usage())
    job = check_id(words[0])
    conf = read_conf(context)
    try:
        work = _work(context, options)
        options = last_rival(options)
        site = site_of(context, conf, "bmod")
        if site is not None:
            site.check(work, options, {})
        add_local_inputs(context, options)
        check_options(options)
        frame = {"ask": "modify", "job": job, "options": options}
        if work is not None:
            frame["command"] = work.command
            if work.script:
                frame["script"] = work.script
        ok = Client(context, conf).change(frame)
    except Fail as fail:
        raise not_done(context, fail, "bmod", NOT_MODIFIED) from None
    context.out(f"Parameters of job <{ok.get('job', job)}> are being changed\n")
    return 0


def _work(context: Context, options: Options) -> Work | None:
    """The command of ``-Z``, or of ``-Zs`` with the script that it names, if one is given."""
    command, spooled = options.pop("Z", None), options.pop("Zs", None)
    if isinstance(spooled, str):
        try:
            words = words_of(spooled)
        except ValueError:
            raise Fail(f"{spooled}: a quote is not closed") from None
        if not words:
            raise Fail("No command is specified")
        return find_work(context, words, False, True)
    if isinstance(command, str) and not command.strip():
        raise Fail("No command is specified")
    return Work(command) if isinstance(command, str) else None


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

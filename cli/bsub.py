"""bsub: submit a job."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_command_options, show_help
from cli.submit.prepare import INTERACTIVE, prepared
from cli.submit.submission import not_done, send, wait_for
from cli.submit.submit_options import bsub_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options
    from cli.submit.prepare import Prepared
    from cli.terminal.x11 import Screen


def run(context: Context) -> int:
    """Submit; 0, or with -K the job's exit status."""
    table = bsub_table()
    try:
        given, words = read_command_options(table, context.argv)
    except Fail as fail:
        raise not_done(context, fail, "bsub", "Job not submitted.") from None
    show_help(context, table, given)
    if "pack" in given:
        if words:
            refusal = Fail("bsub: -pack and a command cannot be used together")
            raise not_done(context, refusal, "bsub", "Job not submitted.")
        from cli.submit.pack import submit_pack

        return submit_pack(context, str(given["pack"]), run)
    conf = read_conf(context)
    client = Client(context, conf)
    try:
        if "BSUB_CHK_RESREQ" in context.environ:
            from cli.submit.requirement import check

            return check(context, prepared(context, conf, given, words).options.get("R"))
        job, made, screen = _submit(context, client, conf, given, words)
    except Fail as fail:
        raise not_done(context, fail, "bsub", "Job not submitted.") from None
    if made.stays in INTERACTIVE:
        from cli.terminal.interactive import bsub_converse

        return bsub_converse(context, client, conf, job, made.stays != "I", screen)
    return wait_for(context, client, conf, job, made.is_array) if made.stays else 0


def _submit(
    context: Context, client: Client, conf: dict[str, str], given: Options, words: list[str]
) -> tuple[int, Prepared, Screen | None]:
    """-> (the job's id, what was submitted, where its windows are shown)."""
    made = prepared(context, conf, given, words)
    screen = None
    if made.forwards:
        from cli.terminal.x11 import Screen

        screen = Screen(context.environ)
    ok = send(context, client, made.frame)
    if made.site is not None:
        made.site.submitted(ok)
    return int(ok["job"]), made, screen


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

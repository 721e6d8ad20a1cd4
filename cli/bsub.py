"""bsub: submit a job."""

from __future__ import annotations

from cli.common.client import Client, read_conf
from cli.common.context import Context, start
from cli.common.directives import read_directives
from cli.common.fail import Fail
from cli.common.options import read_command_options, show_help
from cli.common.script import find_work
from cli.common.submission import (
    check_launch,
    not_done,
    passed_environment,
    send,
    site_of,
    submission,
    wait_for,
    with_defaults,
)
from cli.common.submit_options import bsub_table, last_rival, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.options import Options

YES = ("y", "Y", "yes", "YES", "1")


def run(context: Context) -> int:
    """Submit; 0, or with -K the job's exit status."""
    table = bsub_table()
    try:
        given, words = read_command_options(table, context.argv)
    except Fail as fail:
        raise not_done(fail, "bsub", "Job not submitted.") from None
    helped = show_help(context, table, given)
    if helped is not None:
        return helped
    if "pack" in given:
        return _pack(context, str(given["pack"]))
    conf = read_conf(context)
    client = Client(context, conf)
    try:
        job, waits = _submit(context, client, conf, given, words)
    except Fail as fail:
        raise not_done(fail, "bsub", "Job not submitted.") from None
    return wait_for(context, client, job) if waits else 0


def _pack(context: Context, name: str) -> int:
    """Each line of a file is a submission; one that fails does not keep the others."""
    from cli.common.context import finish
    from cli.common.job_file import pack_lines

    status = 0
    for words in pack_lines(context, name):
        context.argv = words
        status = finish(run, context) or status
    return status


def _submit(
    context: Context, client: Client, conf: dict[str, str], given: Options, words: list[str]
) -> tuple[int, bool]:
    """-> (the job's id, whether -K was given)."""
    described: Options = {}
    if "json" in given or "yaml" in given:
        from cli.common.job_file import read_job_file

        described, command = read_job_file(context, given, bsub_table())
        words = words or ([command] if command else [])
    work = find_work(context, words, conf.get("LSB_BSUB_PARSE_SCRIPT", "") in YES, "Zs" in given)
    inside = read_directives(work.directives, bsub_table()) if work.directives else {}
    options = with_defaults(context, merged(merged(inside, described), last_rival(given)))
    env = passed_environment(context, options)
    site = site_of(context, conf, "bsub")
    if site is not None:
        site.check(work, options, env)
    check_launch(work, options)
    ok = send(context, client, submission(context, work, options, env))
    if site is not None:
        site.submitted(ok)
    return int(ok["job"]), "K" in options


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

"""bsub: submit a job."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, finish, start
from cli.client.options import read_command_options, show_help
from cli.submit.script import find_work
from cli.submit.submission import (
    check_launch,
    not_done,
    passed_environment,
    send,
    site_of,
    submission,
    wait_for,
)
from cli.submit.submit_options import bsub_table, last_rival, merged, with_defaults
from proto.options import BY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options

INTERACTIVE = ("I", "Ip", "Is")
LOCAL_INPUTS = frozenset(("is", "hostfile", "ul"))
YES = ("y", "Y", "yes", "YES", "1")


def run(context: Context) -> int:
    """Submit; 0, or with -K the job's exit status."""
    table = bsub_table()
    try:
        given, words = read_command_options(table, context.argv)
    except Fail as fail:
        raise not_done(context, fail, "bsub", "Job not submitted.") from None
    helped = show_help(context, table, given)
    if helped is not None:
        return helped
    if "pack" in given:
        return _pack(context, str(given["pack"]))
    conf = read_conf(context)
    client = Client(context, conf)
    try:
        job, how = _submit(context, client, conf, given, words)
    except Fail as fail:
        raise not_done(context, fail, "bsub", "Job not submitted.") from None
    if how in INTERACTIVE:
        from cli.terminal.interactive import bsub_converse

        return bsub_converse(context, client, conf, job, how != "I")
    return wait_for(context, client, job) if how else 0


def _pack(context: Context, name: str) -> int:
    """Each line of a file is a submission; one that fails does not keep the others."""
    from cli.submit.job_file import pack_lines

    context.need_own_process()
    status = 0
    for words in pack_lines(context, name):
        context.argv = words
        status = finish(run, context) or status
    return status


def _submit(context: Context, client: Client, conf: dict[str, str], given: Options, words: list[str]) -> tuple[int, str]:
    """-> (the job's id, the option for which this command stays: I, Ip, Is, K, or "")."""
    described: Options = {}
    if any(BY_NAME[name].options_file for name in given):
        from cli.submit.job_file import read_job_file

        described, command = read_job_file(context, given, bsub_table())
        words = words or ([command] if command else [])
    work = find_work(context, words, conf.get("LSB_BSUB_PARSE_SCRIPT", "") in YES, "Zs" in given)
    inside: Options = {}
    if work.directives:
        from cli.submit.directives import read_directives

        inside = read_directives(work.directives, bsub_table())
    options = with_defaults(context, merged(merged(inside, described), last_rival(given)))
    site = site_of(context, conf, "bsub")
    if site is not None or not options.keys().isdisjoint((*INTERACTIVE, "K")):
        context.need_own_process()
    env = passed_environment(context, options)
    if site is not None:
        site.check(work, options, env)
    check_launch(work, options)
    stays = [name for name in (*INTERACTIVE, "K") if options.get(name)]
    if len(stays) > 1:
        raise Fail(f"-{stays[0]} and -{stays[1]} cannot be given together")
    if not LOCAL_INPUTS.isdisjoint(options):
        from cli.submit.local_inputs import add_local_inputs

        add_local_inputs(context, options)
    ok = send(context, client, submission(context, work, options, env))
    if site is not None:
        site.submitted(ok)
    return int(ok["job"]), stays[0] if stays else ""


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

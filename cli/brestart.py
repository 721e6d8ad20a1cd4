"""brestart: submit a checkpointed job again, to start from its checkpoint."""

from __future__ import annotations

import os
import re

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_command_options, show_help, table_of
from cli.submit.script import Work
from cli.submit.submission import not_done, passed_environment, send, site_of, submission
from cli.submit.submit_options import REPEATED, last_rival
from proto.numbers import find_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Table

NOT_SUBMITTED = "Job not submitted."
_ID = re.compile(r"(\d+)(?:\[(\d+)\]|\.(\d+))?", re.ASCII)


def run(context: Context) -> int:
    table = table_of("brestart", repeated=REPEATED)
    try:
        options, words = read_command_options(table, context.argv)
    except Fail as fail:
        raise not_done(context, fail, "brestart", NOT_SUBMITTED) from None
    show_help(context, table, options)
    folder, job, index = _which(words, table)
    conf = read_conf(context)
    try:
        options = last_rival(options)
        env = passed_environment(context, options)
        site = site_of(context, conf, "brestart")
        if site is not None:
            site.check(None, options, env)
        folder = context.path(folder)
        generation = newest(os.path.join(folder, f"{job}.{index}" if index else str(job)))
        options["k"] = folder
        frame = submission(context, Work(""), options, env, restart_of=job)
        if index:
            frame["restart_index"] = index
        if generation >= 0:
            frame["restart_from"] = generation
        ok = send(context, Client(context, conf), frame)
    except Fail as fail:
        raise not_done(context, fail, "brestart", NOT_SUBMITTED) from None
    if site is not None:
        site.submitted(ok)
    return 0


def newest(folder: str) -> int:
    """The number of the newest complete checkpoint in a job's folder; -1: there is none on this host."""
    try:
        names = os.listdir(folder)
    except OSError:
        return -1
    found = [int(name[4:]) for name in names if name.startswith("gen-") and name[4:].isdigit() and len(name) < 14]
    return max((number for number in found if os.path.exists(os.path.join(folder, f"gen-{number}", "MANIFEST"))), default=-1)


def _which(words: list[str], table: Table) -> tuple[str, int, int]:
    """``DIR ID``, or LSF's ``DIR/ID`` -> (folder, job, index or 0); an element: ``ID[INDEX]``, or ``ID.INDEX`` as its folder."""
    if len(words) == 1:
        folder, _, job = words[0].rstrip("/").rpartition("/")
    elif len(words) == 2:
        folder, job = words
    else:
        raise Fail(table.usage())
    found = _ID.fullmatch(job)
    number, index = (find_number(found[1]), find_number(found[2] or found[3] or "0")) if found else (None, None)
    if not folder or number is None or index is None:
        raise Fail(f"{job or words[0]}: Illegal job ID")
    return folder, number, index


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

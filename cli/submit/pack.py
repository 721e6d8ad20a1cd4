"""``bsub -pack``: each line of a file is a submission; one that fails does not keep the others. Many go in one ask."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, finish, readable
from cli.client.options import HELP, read_command_options
from cli.submit.bulk import MOST, submit_many
from cli.submit.job_file import pack_lines
from cli.submit.prepare import Prepared, prepared
from cli.submit.submission import esub_folder, not_done, tell
from cli.submit.submit_options import bsub_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.client.options import Table

    Line = tuple[str, Prepared | Fail]
    """Which line of which file, and what it submits, or why it does not."""


def submit_pack(context: Context, name: str, alone: Callable[[Context], int]) -> int:
    """Submit all; 0, or the status of the last that failed.

    ``alone`` runs bsub for a line that only shows its help, or whose script makes bsub stay (-K).
    """
    context.need_own_process()
    table = bsub_table()
    lines = pack_lines(context, name, table)
    if not lines:
        raise not_done(context, Fail(f"{name}: there is no job in it"), "bsub", "Job not submitted.")
    conf = read_conf(context)
    esubs = esub_folder(context, conf)
    waiting: list[Line] = []
    status = 0
    for number, words in lines:
        made = _prepared(context, conf, table, words, esubs)
        if made is not None:
            waiting.append((f"{name}: line {number}", made))
        if made is None or len(waiting) == MOST:
            status = _send(context, conf, waiting) or status
            waiting = []
        if made is None:
            context.argv = words
            status = finish(alone, context) or status
    return _send(context, conf, waiting) or status


def _prepared(context: Context, conf: dict[str, str], table: Table, words: list[str], esubs: str) -> Prepared | Fail | None:
    """What a line submits, or why it does not; None: bsub has more to do for it."""
    try:
        given, command = read_command_options(table, words)
        if given.keys() & {*HELP}:
            return None
        made = prepared(context, conf, given, command, esubs)
        return None if made.stays else made
    except Fail as fail:
        return fail


def _send(context: Context, conf: dict[str, str], waiting: list[Line]) -> int:
    """Submit them and print, in their order, what became of each; the status of the last that failed, 0 if none did."""
    status = 0
    found = submit_many(context, Client(context, conf), [made.frame for _, made in waiting if isinstance(made, Prepared)])
    for line, made in waiting:
        try:
            ok = made if isinstance(made, Fail) else next(found)
        except Fail as fail:
            # of what is left, nothing is known
            raise not_done(context, fail, "bsub", "Job not submitted.") from None
        if ok is None:
            continue
        if isinstance(ok, Fail):
            told = not_done(context, ok, "bsub", "Job not submitted.")
            context.err(f"{line}: {readable(told.text)}\n")
            status = told.status
            continue
        if isinstance(made, Prepared):
            tell(context, ok, made.frame)
            if made.site is not None:
                made.site.submitted(ok)
    return status

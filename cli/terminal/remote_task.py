"""A task of lsrun and lsgrun: an interactive job of one slot that starts as soon as its host has one free, without messages."""

from __future__ import annotations

from cli.client.client import BASE, Client, read_conf
from cli.client.context import Fail, Refused
from cli.submit.script import Work, command_line
from cli.submit.submission import passed_environment, submission
from cli.terminal.interactive import Conversation, Messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.context import Context
    from cli.client.options import Options


def run_task(context: Context, command: str, words: list[str], wishes: Options, mode: str, verbose: bool) -> int:
    """Run a task as an interactive job; its exit code. ``wishes``: options of bsub. An unknown host is named in LSF's words."""
    conf = read_conf(context, BASE)
    client = Client(context, conf)
    work = Work(command_line(words))
    options: Options = {**wishes, mode: True}
    try:
        ok = client.change(submission(context, work, options, passed_environment(context, options)))
    except Refused as refusal:
        host = str(wishes.get("m", ""))
        if host and "Bad host name" in refusal.text:
            context.err(f"{command}: ls_rtaske() failed on host {host}: Bad host name\nls_rwait(): No remote child\n")
            return 0
        raise Fail(f"{command}: {refusal.text}") from None
    job = int(ok["job"])
    name = f"{command}: job <{job}>" + (f" for host {wishes['m']}" if wishes.get("m") else "")
    return Conversation(context, client, conf, job, mode != "I", _OfTask(context, name, words[0] if verbose else "")).stay()


class _OfTask(Messages):
    """A task prints its own output alone, unless it waits. ``program``: what is said to be executed, "": nothing is."""

    silent = 2.0

    def __init__(self, context: Context, name: str, program: str) -> None:
        self._context, self._name, self._program = context, name, program

    def starts(self, host: str) -> None:
        if self._program:
            self._context.err(f"<<Execute {self._program} on remote host {host}>>\n")

    def waits(self, reason: str) -> None:
        if reason:
            self._context.err(f"{self._name} waits: {reason}\n")


def chosen_hosts(context: Context, command: str, resreq: str, count: str) -> list[str]:
    """The hosts that lsplace chooses; raises Refused where there are not so many."""
    client = Client(context, read_conf(context, BASE))
    options: Options = {"n": count, **({"R": resreq} if resreq else {})}
    try:
        names = client.text_of({"ask": "query", "command": "lsplace", "options": options, "words": []}).split()
    except Refused as refused:
        raise Refused(f"{command}: {refused.text.removeprefix('lsplace: ')}", refused.status) from None
    if not names:
        raise Fail("", 1)
    return names

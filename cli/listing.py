"""The commands that only show: options and words go to the master, which renders the text. What each takes stands in
``proto/commands.py``; here is what a few of them do on this host first, such as reading a file.
"""

from __future__ import annotations

import os

from cli.client.client import BASE, BATCH, Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of
from proto.commands import COMMANDS, OF_LAVA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.client.options import Options

LARGEST_HOST_FILE = 1 << 20
"""Characters."""
MODE_OF_SAVED_DATA = 0o666


def main(argv: list[str] | None, command: str) -> int:
    """Run one of them; its exit status."""
    if argv is not None and command in OF_LAVA:
        argv = _one_dash(argv)
    return start(lambda context: show(context, command), argv)


def _one_dash(words: list[str]) -> list[str]:
    """``--user ann`` and ``--user=ann`` as the options of listings are written: ``-user ann``."""
    found: list[str] = []
    for word in words:
        if word == "--help":
            found.append(word)
            continue
        name, equals, value = word.partition("=")
        found += [name[1:], value] if equals and word.startswith("--") else [word[1:] if word.startswith("--") else word]
    return found


def show(context: Context, command: str) -> int:
    """Ask the master and print what it renders; its exit status."""
    row = COMMANDS[command]
    options, words = read_argv(context, table_of(command), status=row.help_exit)
    client = Client(context, read_conf(context, BASE if command.startswith("ls") else BATCH))
    before = _BEFORE.get(command)
    if before is not None:
        before(context, client, options, words)
    columns = context.environ.get(row.form)
    if columns:
        options[row.form] = columns
    if options.pop("-watch", False):
        from cli.live.again import watch

        return watch(context, _query(command, options, words), options, words)
    return client.query(_query(command, options, words))


def _query(command: str, options: Options, words: list[str]) -> dict[str, object]:
    return {"ask": "query", "command": command, "options": options, "words": words}


def _bacct(context: Context, client: Client, options: Options, words: list[str]) -> None:
    """``-f FILE``: jobs of an lsb.acct; ``-M FILE``: the hosts in it, beside those of ``-m``."""
    from cli.client import lsf_file

    add_hosts_of_file(context, options)
    lsf_file.send(context, options, words, "JOB_FINISH", stdin=True)


def add_hosts_of_file(context: Context, options: Options) -> None:
    """Replace ``-M FILE`` by the hosts that the file names, as of ``-m``."""
    name = options.pop("M", None)
    if not isinstance(name, str):
        return
    try:
        with open(context.path(name), encoding="utf-8", errors="replace") as file:
            text = file.read(LARGEST_HOST_FILE + 1)
    except (OSError, ValueError) as error:
        raise Fail(f"{name}: {getattr(error, 'strerror', None) or 'Bad file name'}") from None
    hosts = [word for line in text.splitlines() for word in line.partition("#")[0].split()]
    if not hosts or len(text) > LARGEST_HOST_FILE:
        raise Fail(f"{name}: {'no host is in it' if not hosts else f'larger than {LARGEST_HOST_FILE} characters'}")
    options["m"] = " ".join([str(options.get("m", "")), *hosts]).strip()


def _bhist(context: Context, client: Client, options: Options, words: list[str]) -> None:
    """``-f FILE``: an lsb.events."""
    from cli.client import lsf_file

    lsf_file.send(context, options, words)


def _lsacct(context: Context, client: Client, options: Options, words: list[str]) -> None:
    """``-f FILE``: an lsf.acct."""
    from cli.client import lsf_file

    lsf_file.send(context, options, [], lsf_file.ANY)


def _bread(context: Context, client: Client, options: Options, words: list[str]) -> None:
    """``-a FILE``: save the data that is attached to a message. ``-w`` changes nothing: a message is never cut."""
    options.pop("w", None)
    name = options.pop("a", "")
    if not isinstance(name, str) or not name:
        return
    options.setdefault("i", "0")
    path = context.path(name)
    data = client.text_of(_query("bread", {**options, "a": True}, words))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, MODE_OF_SAVED_DATA)
        with open(descriptor, "wb") as file:
            file.write(data.encode("utf-8"))
    except OSError as error:
        raise Fail(f"{name}: {error.strerror}") from None


def _time_left(context: Context, client: Client, options: Options, words: list[str]) -> None:
    """Inside a job, that job is meant."""
    if not words and (job := context.environ.get("LSB_JOBID", "")):
        index = context.environ.get("LSB_JOBINDEX", "0")
        words.append(f"{job}[{index}]" if index not in ("", "0") else job)


_BEFORE: dict[str, Callable[[Context, Client, Options, list[str]], None]] = {
    "bacct": _bacct,
    "bhist": _bhist,
    "bread": _bread,
    "lsacct": _lsacct,
    "time-left": _time_left,
}

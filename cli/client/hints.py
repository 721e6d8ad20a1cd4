"""The line behind a refusal on a terminal: which option, queue, host or command was meant, and where more is said.

Rule: only after a failure, and only where stderr is a terminal: what programs read stays as LSF has it.
"""

from __future__ import annotations

import difflib
import re

from cli.client.context import Context, Fail
from proto.options import LEFT_OUT

_OPTION = re.compile(r"^([\w.]+(?: [\w-]+)?): (?:illegal|invalid|unknown) option -- '?(\S+?)'?$", re.MULTILINE)
_QUEUE = re.compile(r"^(\S+): No such queue", re.MULTILINE)
_HOST = re.compile(r"^(\S+): (?:Bad host name|Bad host specification|No such host)", re.MULTILINE)
_SUBCOMMAND = re.compile(r"^Invalid command <(\S+)>", re.MULTILINE)
_HOST_UNNAMED = re.compile(r"^Bad host name, host group", re.MULTILINE)
_HOST_BEHIND = re.compile(r"invalid hostname (\S+)$", re.MULTILINE)
_APPLICATION = re.compile(r"^(\S+): No such application profile", re.MULTILINE)
_ALIKE = 0.6
PATIENCE = 5.0
"""Seconds that the master may be silent."""


def hint(context: Context, said: str) -> str:
    """``Did you mean -q?`` with its newline, "" where nothing is like what was given."""
    if found := _OPTION.search(said):
        command, wrong = found[1], found[2]
        if len(wrong) == 1:  # getopt names the letter: -noheadr was read as -n and what follows
            wrong = next((word[1:] for word in context.argv if word[:1] == "-" and len(word) > 2 and wrong in word), wrong)
        dash = "--" if command.startswith("lava ") and command not in LEFT_OUT else "-"
        words = [f"{dash}{name}" for name in closest(wrong, _options(command))]
        return meant(words) or f"{command} -h shows the options\n"
    for pattern, command, field in (
        (_QUEUE, "bqueues", "queue_name"),
        (_HOST, "bhosts", "host_name"),
        (_HOST_BEHIND, "bhosts", "host_name"),
    ):
        if found := pattern.search(said):
            names = _names(context, command, field)
            return meant(closest(found[1], names)) or (f"{command} shows them\n" if names else "")
    if _HOST_UNNAMED.search(said):  # badmin, as LSF has it: which word it is about is not said
        names = _names(context, "bhosts", "host_name")
        wrong = [word for word in context.argv[1:] if word[:1] != "-" and word not in names]
        return meant([name for word in wrong for name in closest(word, names)][:3]) or ("bhosts shows them\n" if names else "")
    if found := _SUBCOMMAND.search(said):
        from proto.help.usages import BADMIN, LSADMIN, subcommands

        return meant(closest(found[1], subcommands(BADMIN if "Usage: badmin" in said else LSADMIN)))
    if found := _APPLICATION.search(said):
        return "bapp shows them\n"
    return ""


def meant(words: list[str]) -> str:
    return f"Did you mean {' or '.join(words)}?\n" if words else ""


def closest(word: str, known: list[str]) -> list[str]:
    """At most three; letters in the other case come first."""
    same = [name for name in known if name.lower() == word.lower()]
    return same or difflib.get_close_matches(word, known, 3, _ALIKE)


def _options(command: str) -> list[str]:
    """The options that a command has and lava supports; of an unknown command none."""
    from proto.commands import COMMANDS
    from proto.options import OPTIONS

    left_out = LEFT_OUT.get(command, ())
    command = "bsub" if left_out else command.removeprefix("lava ")
    if command in ("bsub", "bmod"):
        known = [one for one in OPTIONS if one.only in ("", command) and not one.unsupported and one.name not in left_out]
        resets = [f"{option.name}n" for option in known if command == "bmod" and option.has_reset]
        return [option.name for option in known] + resets
    row = COMMANDS.get(command)
    return [name for name in f"{row.flags} {row.valued}".split() if name not in row.refused.split()] if row is not None else []


def _names(context: Context, command: str, field: str) -> list[str]:
    """What a listing has in a column; [] where the master does not answer at once."""
    from cli.client.client import Client, read_conf

    try:
        client = Client(context, read_conf(context))
        client.tries = 1
        options = {"noheader": True, "o": field}
        text = client.text_of({"ask": "query", "command": command, "options": options, "words": []}, True, PATIENCE)
    except (Fail, OSError, EOFError, ValueError):
        return []
    return text.split()

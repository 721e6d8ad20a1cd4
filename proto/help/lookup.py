"""The line of help of each option of a command, and what ``--help`` prints."""

from __future__ import annotations

import re
import textwrap

from proto.commands import COMMANDS, OF_LAVA
from proto.help import others, submitting
from proto.help.usages import LAVA
from proto.options import LEFT_OUT, OPTIONS

NOTHING = "taken as in LSF; it changes nothing here"
ALWAYS = (
    ("h", "", "the usage, on standard error"),
    ("V", "", "the version, on standard error"),
    ("-help", "", "this"),
)
"""Options of every command."""
RESETS = "Each option with an n behind it (-Wn) takes away what was asked for."
_NAMES, _WIDTH = 26, 100
_WORDS = {
    "bsub": "[command [argument ...]]",
    "bmod": "job_ID | job_ID[index_list]",
    "lava run": "FILE ... | -",
    "lava jupyter": "[-- argument ...] | job_ID",
}

Row = tuple[str, str, str]
"""An option's name without its dash, what its value is called, what it does."""


def rows(command: str) -> list[Row]:
    """The options that a command has and lava supports, in the order of its usage; ``why``: lava why.

    Raises KeyError for an option without a text.
    """
    if command in ("bsub", "bmod"):
        return _of_submission(command)
    if command in LEFT_OUT:
        kept = [row for row in _of_submission("bsub") if row[0] not in LEFT_OUT[command]]
        return [*kept, *_read(submitting.LAVA_RUN)] if command == "lava run" else kept
    row = COMMANDS[command.removeprefix("lava ")]
    if row.name in others.OWN:
        return _read(others.OWN[row.name])
    if command == "brestart":
        known = _table(submitting.BSUB)
    else:
        known = _table(others.COMMON) | _table(others.COMMANDS.get(row.name, ""))
    refused = row.refused.split()
    found = []
    for name in f"{row.flags} {row.valued}".split():
        if name not in refused:
            value, words = known[name]
            found.append((name, "" if name in row.flags.split() else value, words))
    return found


def _of_submission(command: str) -> list[Row]:
    known = _table(submitting.BSUB) | (_table(submitting.BMOD) if command == "bmod" else {})
    found = []
    for option in OPTIONS:
        if option.only in ("", command) and not option.unsupported:
            value, words = known[option.same_as or option.name]
            same = f"the same as -{option.same_as}" if option.same_as else words
            found.append((option.name, "" if (option.bmod if command == "bmod" else option.takes) == "flag" else value, same))
    return found


def _table(block: str) -> dict[str, tuple[str, str]]:
    return {name: (value, words) for name, value, words in _read(block)}


def _read(block: str) -> list[Row]:
    found = []
    for line in block.splitlines():
        left, words = re.split(" {2,}", line, maxsplit=1)
        name, _, value = left.partition(" ")
        found.append((name, value, NOTHING if words == "-" else words))
    return found


def shown(command: str) -> str:
    """What ``--help`` prints of a command; of one that is not in the registry, ""."""
    name = command.removeprefix("lava ")
    row = COMMANDS.get(name)
    about = LAVA.get(name, "") if name != command else row.help if row is not None else ""
    if not about:
        return ""
    words = _WORDS.get(command) or (row.words if row is not None else "")
    dash = "--" if name in OF_LAVA else "-"
    lines = [f"Usage: {command} [options] {words}".rstrip(), "", f"{about[:1].upper()}{about[1:]}.", ""]
    for option, value, text in (*rows(command), *(ALWAYS[2:] if name in OF_LAVA else ALWAYS)):
        lines += _folded(f"  {'-' if option[0] == '-' else dash}{option} {value}".rstrip(), text)
    return "\n".join([*lines, *(("", RESETS) if command == "bmod" else ())]) + "\n"


def _folded(left: str, text: str) -> list[str]:
    """An option and its text in two columns."""
    folded = textwrap.wrap(text, _WIDTH - _NAMES)
    first = [f"{left:<{_NAMES}}{folded[0]}"] if len(left) < _NAMES - 1 else [left, " " * _NAMES + folded[0]]
    return first + [" " * _NAMES + line for line in folded[1:]]

"""``lava man DIR``: a manual page for each command, made of the tables that its ``-h`` and ``--help`` are made of.

``make install`` writes them where ``man`` looks for the pages of commands in PATH.
"""

from __future__ import annotations

import os
import sys

from cli.terminal.targets import USAGE as BLAUNCH
from proto.commands import COMMANDS, INSTALLED
from proto.help.lookup import ALWAYS, RESETS, rows
from proto.help.usages import BADMIN, LAVA, LSADMIN
from proto.version import VERSION
from proto.whole_file import replace_file

USAGE = "Usage: lava man DIR"
SECTION = os.path.join("share", "man", "man1")
_SEE = {"bsub": "bjobs bmod bkill", "bjobs": "bsub bhist bacct", "bhist": "bjobs bacct", "bkill": "bstop bresume bjobs"}
_USAGES = {"badmin": BADMIN, "lsadmin": LSADMIN, "blaunch": BLAUNCH}
"""Usages that say more than the options do."""


def page(command: str) -> str:
    """In roff."""
    row = COMMANDS[command]
    lines = [f'.TH {command.upper()} 1 "" "lava {VERSION}" "lava"', ".SH NAME", f"{command} \\- {_plain(row.help)}"]
    lines += [".SH SYNOPSIS", *_synopsis(command), ".SH OPTIONS"]
    for name, value, words in (*rows(command), *ALWAYS):
        lines += [".TP", f".B \\-{_plain(f'{name} {value}'.rstrip())}", _plain(words)]
    if command == "bmod":
        lines += [".PP", _plain(RESETS)]
    lines += _subcommands() if command == "lava" else []
    lines += [".SH EXIT STATUS", "0: done. 255: refused, or nothing matched."]
    lines += [".SH ENVIRONMENT", "LSF_ENVDIR: the folder of lsf.conf. NO_COLOR: no colours on a terminal."]
    others = [f"{other}(1)" for other in _SEE.get(command, "bsub bjobs lava").split() if other != command]
    lines += [".SH SEE ALSO", ", ".join(others)]
    return "\n".join(lines) + "\n"


def _subcommands() -> list[str]:
    """Those of lava."""
    lines = [".SH SUBCOMMANDS"]
    for name, words in LAVA.items():
        lines += [".TP", f".B {_plain(name)}", _plain(words)]
    return [*lines, ".PP", _plain("lava NAME --help has the options of each.")]


def _synopsis(command: str) -> list[str]:
    if command in _USAGES:
        lines = [line[7:] if line.startswith(("Usage: ", " " * 7)) else line for line in _USAGES[command].splitlines()]
        return [".nf", *(f"\\&{_plain(line)}" for line in lines), ".fi"]
    options = [f"[\\-{_plain(f'{name} {value}'.rstrip())}]" for name, value, _ in rows(command)]
    return [f".B {command}", " ".join([*options, _plain(COMMANDS[command].words)]).strip() or "\\&"]


def _plain(text: str) -> str:
    """What roff would read as something else."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace('"', "\\(dq")


def write(folder: str) -> int:
    """All pages below a folder; how many. Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    for command in INSTALLED:
        replace_file(os.path.join(folder, f"{command}.1"), page(command))
    return len(INSTALLED)


def main(argv: list[str]) -> int:
    """Exit 0; 255 with one line on stderr where they cannot be written."""
    if argv in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if len(argv) != 1 or argv[0].startswith("-"):
        print("lava man: say into which folder the pages are to go", file=sys.stderr)
        return 255
    try:
        print(f"{write(argv[0])} pages in {argv[0]}")
    except OSError as error:
        print(f"lava man: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return 255
    return 0

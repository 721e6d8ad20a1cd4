"""``lava man DIR``: a manual page for each command, made of the tables that its ``-h`` is made of.

``make install`` writes them where ``man`` looks for the pages of commands in PATH.
"""

from __future__ import annotations

import os
import sys

from proto.commands import COMMANDS, INSTALLED
from proto.options import OPTIONS
from proto.version import VERSION

SECTION = os.path.join("share", "man", "man1")
_SEE = {"bsub": "bjobs bmod bkill", "bjobs": "bsub bhist bacct", "bhist": "bjobs bacct", "bkill": "bstop bresume bjobs"}
_FORMS = {"duration": "[hour:]minute", "date": "[[month:]day:]hour:minute", "size": "size[KB|MB|GB|TB]", "text": "value"}


def page(command: str) -> str:
    """In roff."""
    row = COMMANDS[command]
    lines = [f'.TH {command.upper()} 1 "" "lava {VERSION}" "lava"', ".SH NAME", f"{command} \\- {_plain(row.help)}"]
    lines += [".SH SYNOPSIS", f".B {command}", *_synopsis(command), ".SH OPTIONS"]
    for name, value, words in _options(command):
        if words:
            lines += [".TP", f".B \\-{_plain(name)}{f' {value}' if value else ''}", _plain(words)]
    for name, words in (("-h", "prints the options."), ("-V", "prints the version.")):
        lines += [".TP", f".B {_plain(name)}", words]
    lines += [".SH EXIT STATUS", "0: done. 255: refused, or nothing matched."]
    lines += [".SH ENVIRONMENT", "LSF_ENVDIR: the folder of lsf.conf. NO_COLOR: no colours on a terminal."]
    others = [f"{other}(1)" for other in _SEE.get(command, "bsub bjobs lava").split() if other != command]
    lines += [".SH SEE ALSO", ", ".join(others)]
    return "\n".join(lines) + "\n"


def _synopsis(command: str) -> list[str]:
    options = [f"[\\-{_plain(name)}{f' {value}' if value else ''}]" for name, value, _ in _options(command)]
    return [" ".join([*options, _plain(COMMANDS[command].words)]).strip() or "\\&"]


def _options(command: str) -> list[tuple[str, str, str]]:
    """(name, what its value is called, what it says) of those that lava supports."""
    if command in ("bsub", "bmod"):
        known = [option for option in OPTIONS if option.only in ("", command) and not option.unsupported]
        return [
            (
                option.name,
                "" if option.takes == "flag" else _FORMS[option.form],
                f"The same as -{option.same_as}." if option.same_as else option.shown and f"{option.shown}.",
            )
            for option in known
        ]
    row = COMMANDS[command]
    refused = {*row.refused.split()}
    pairs = [(name, "") for name in row.flags.split()] + [(name, "value") for name in row.valued.split()]
    return [(name, value, "") for name, value in pairs if name not in refused]


def _plain(text: str) -> str:
    """What roff would read as something else."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")


def write(folder: str) -> int:
    """All pages below a folder; how many. Raises OSError."""
    os.makedirs(folder, exist_ok=True)
    for command in INSTALLED:
        path = os.path.join(folder, f"{command}.1")
        with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
            file.write(page(command))
        os.replace(f"{path}.{os.getpid()}", path)
    return len(INSTALLED)


def main(argv: list[str]) -> int:
    """Exit 0; 255 with one line on stderr where they cannot be written."""
    if len(argv) != 1:
        print("lava man: say into which folder the pages are to go", file=sys.stderr)
        return 255
    try:
        print(f"{write(argv[0])} pages in {argv[0]}")
    except OSError as error:
        print(f"lava man: {error.filename}: {error.strerror}", file=sys.stderr)
        return 255
    return 0

"""``lava secret``: values that a job gets as variables, and that appear on no command line, in no database and in no log.

Rule: a value is stored in a file of the user and nowhere else; ``bsub -secret NAME`` only names it.
"""

from __future__ import annotations

import os
import re
import sys

from proto.options import SECRETS_FOLDER
from proto.whole_file import replace_file

USAGE = "Usage: lava secret set NAME < value | lava secret rm NAME | lava secret ls"
LONGEST = 64 << 10


def main(words: list[str]) -> int:
    """Exit 0, or 1 with one line on stderr."""
    folder = os.path.join(os.path.expanduser("~"), SECRETS_FOLDER)
    try:
        return _run(words, folder)
    except (OSError, ValueError) as error:
        what = f"{error.filename or 'output'}: {error.strerror}" if isinstance(error, OSError) else error
        print(f"lava secret: {what}", file=sys.stderr)
        return 1


def _run(words: list[str], folder: str) -> int:
    if words in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if words == ["ls"]:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            print(name)
        return 0
    if len(words) != 2 or words[0] not in ("set", "rm"):
        raise ValueError(USAGE)
    name = words[1]
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
        raise ValueError(f"{name[:80]}: a variable's name is expected")
    if words[0] == "rm":
        os.unlink(os.path.join(folder, name))
    else:
        _keep(folder, name, _value(name))
    return 0


def _value(name: str) -> bytes:
    if sys.stdin.isatty():
        import getpass

        return os.fsencode(getpass.getpass(f"{name}: "))
    value = sys.stdin.buffer.read(LONGEST + 1)
    if not value:
        raise ValueError(f"{name}: no value came on standard input")
    if len(value) > LONGEST:
        raise ValueError(f"{name}: longer than {LONGEST} bytes")
    return value


def _keep(folder: str, name: str, value: bytes) -> None:
    """Write the value whole or not at all; nobody else can read it at any moment."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name)
    replace_file(path, value, 0o600)

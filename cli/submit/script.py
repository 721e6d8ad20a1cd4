"""Where the command of a submission comes from: the words of the command line, a FILE, stdin, or a terminal."""

from __future__ import annotations

import os
from stat import S_ISREG

from cli.client.context import Context, Fail
from cli.client.frames import LARGEST_ASK

PROMPT = "bsub> "
LONGEST_SHOWN = 4096
ESCAPED = "()'\"\\"
SHELLS = ("sh", "bash", "dash", "ksh", "zsh", "ash")


class Work:
    """What is to run: ``script`` whole (its ``command`` is then what bjobs shows), or the ``command`` alone.

    ``directives`` is the text whose #BSUB lines count.
    """

    __slots__ = ("command", "directives", "script")

    def __init__(self, command: str, script: str = "", directives: str = "") -> None:
        self.command = command
        self.script = script
        self.directives = directives


def find_work(context: Context, words: list[str], parse_script: bool, spool: bool = False) -> Work:
    """``parse_script``: LSB_BSUB_PARSE_SCRIPT; ``spool``: -Zs, which takes FILE as a script without its directives."""
    if not words:
        return _from_stdin(context)
    found = _script_file(context, words[0], spool) if parse_script or spool else None
    if found is None:
        return Work(command_line(words))
    path, text = found
    directives = text if parse_script else ""
    if len(words) == 1:
        return Work(words[0], text, directives)
    if os.access(path, os.X_OK):
        return Work(command_line([path, *words[1:]]), "", directives)
    return Work(command_line(words), _with_arguments(text, words), directives)


def _from_stdin(context: Context) -> Work:
    if os.isatty(context.stdin):
        context.need_own_process()
        text = _decoded(_typed(context), "standard input")
        kind = "No command is specified"
    else:
        context.acts()
        context.taken = _read_all(context.stdin)
        text = _decoded(context.taken, "standard input")
        regular = S_ISREG(os.fstat(context.stdin).st_mode)
        kind = "No command is specified in the script file" if regular else "No command is specified"
    if not has_command(text):
        raise Fail(kind)
    return Work(shown(text), text, text)


def has_command(script: str) -> bool:
    """Whether a script has any line besides blank ones and comments."""
    return any(line.strip() and not line.lstrip().startswith("#") for line in script.split("\n"))


def shown(script: str) -> str:
    """A script as bjobs shows it: its lines joined by semicolons."""
    text = script[: 2 * LONGEST_SHOWN].rstrip("\n")
    return text.replace("\n", ";")[:LONGEST_SHOWN]


def _typed(context: Context) -> bytes:
    lines: list[bytes] = []
    prompt = context.out if os.isatty(context.stdout) else context.err
    while True:
        prompt(PROMPT)
        line = os.read(context.stdin, 65536)
        if not line:
            return b"".join(lines)
        lines.append(line)


def _read_all(descriptor: int) -> bytes:
    parts = []
    size = 0
    try:
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ASK:
                raise Fail(f"The script is larger than {LARGEST_ASK} bytes")
    except OSError as error:
        raise Fail(f"standard input: {error.strerror}") from None
    return b"".join(parts)


def _decoded(data: bytes, name: str) -> str:
    if b"\0" in data:
        raise Fail(f"{name}: not a text file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Fail(f"{name}: not a text in UTF-8") from None


def _script_file(context: Context, word: str, wanted: bool) -> tuple[str, str] | None:
    """(path, text) of the script that a command's first word names, or None: it is a command.

    A bare name is looked for in the working folder; where PATH has it too, only what calls itself a script is taken.
    """
    path = context.path(word)
    try:
        status = os.stat(path)
        if not S_ISREG(status.st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        if wanted:
            raise Fail(f"{word}: {getattr(error, 'strerror', None) or error}") from None
        return None
    try:
        head = os.read(descriptor, 4096)
        if b"\0" in head or (not wanted and not _means_script(context, word, head)):
            return None
        data = head + _read_all(descriptor)
    finally:
        os.close(descriptor)
    if not wanted and os.path.isabs(word) and b"#BSUB" not in data and os.access(path, os.X_OK):
        return None
    return path, _decoded(data, word)


def _means_script(context: Context, word: str, head: bytes) -> bool:
    if "/" in word or head.startswith(b"#!") or b"#BSUB" in head:
        return True
    folders = context.environ.get("PATH", "").split(":")
    return not any(folder and os.access(os.path.join(folder, word), os.X_OK) for folder in folders)


def _with_arguments(text: str, words: list[str]) -> str:
    """The script with ``set --`` for its arguments, as a file that is not executable has no other way to get them."""
    first, newline, rest = text.partition("\n")
    setting = "set -- " + " ".join([single_quoted(word) for word in words[1:]]) + "\n"
    if not first.startswith("#!"):
        return setting + text
    if not any(os.path.basename(word) in SHELLS for word in first[2:].split()):
        raise Fail(f"{words[0]}: not executable, so that it can be given no arguments")
    return first + (newline or "\n") + setting + rest


def command_line(words: list[str]) -> str:
    """The words as the one shell command that LSF makes of them.

    The first word as it is, for it may be a whole shell command; a later word is quoted where it holds blanks or begins with
    ``$``, and parentheses, quotes and backslashes are escaped. Other signs (``;`` ``>`` ``*``) stay the shell's.
    """
    return " ".join([word if place == 0 else _quoted(word) for place, word in enumerate(words)])


def _quoted(word: str) -> str:
    blank = not word or any(char in " \t\n" for char in word)
    if word.startswith("$") or (blank and ('"' in word or "$" in word)):
        return single_quoted(word)
    if blank:
        return '"' + word.replace("\\", "\\\\").replace("`", "\\`") + '"'
    return "".join(["\\" + char if char in ESCAPED else char for char in word])


def single_quoted(word: str) -> str:
    """A word that no shell changes."""
    return "'" + word.replace("'", "'\\''") + "'"

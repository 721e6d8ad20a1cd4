"""The command line of a job: what is executed, and whether a shell is needed for it.

Rule: a command of plain words, also behind ``exec``, is executed directly, and then does and prints what ``/bin/sh -c`` would.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from proto import agent_pb2 as pb

_PLAIN = re.compile(r"[A-Za-z0-9_./:,+@%-][A-Za-z0-9_./:,+@%=-]*(?: +[A-Za-z0-9_./:,+@%=-]+)*")
_PIECE = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^'"\\]+|.""", re.DOTALL)
"""What stands in quotes, an escaped character, or what stands between them."""
_WORDS = (
    ". : alias bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc declare dirs"
    " disown do done elif else enable esac eval exec exit export fc fg fi for function getopts hash help history if in"
    " jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt"
    " source suspend test then time times trap type typeset ulimit umask unalias unset until wait while"
)
_SHELL_WORDS = frozenset(_WORDS.split())
_SAME_OUTSIDE = ("/bin", "/usr/bin")


def plain_words(command: str, path: str) -> list[str] | None:
    """The words of a command that needs no shell, else None. ``path`` is the job's PATH."""
    command = command.strip(" \n")
    if len(command) > 4096 or not _PLAIN.fullmatch(command):
        return None
    words = command.split()
    execs = words[0] == "exec" and len(words) > 1 and words[1][0] != "-"
    if execs:
        del words[0]
    first = words[0]
    if "=" in first or first in _SHELL_WORDS:
        return None
    if execs:
        return words  # a program, whatever a shell has built in
    if first in ("true", "false", "echo"):
        options = first == "echo" and any(word.startswith("-") for word in words[1:])
        if options or not any(folder in _SAME_OUTSIDE for folder in path.split(":")):
            return None
    return words


def with_files(line: str, files: Mapping[str, str]) -> str:
    """A command line with the paths of files in the place of others; they may have blanks.

    Each is quoted as it must be where it stands: alone, in quotes, or in quotes with other words, which another shell reads
    (``sh -c 'cat /etc/mpi/hostfile'``).
    """
    if not any(place in line for place in files):
        return line
    return "".join(_piece_with_files(piece, files) for piece in _PIECE.findall(line))


def _piece_with_files(piece: str, files: Mapping[str, str]) -> str:
    mark = piece[0]
    if len(piece) == 1 or mark not in ("'", '"'):
        return replaced(piece, {place: quote(path) for place, path in files.items()})
    change = with_files if re.search(r"\s", piece) else replaced
    if mark == "'":
        return "'" + change(piece[1:-1], files).replace("'", "'\\''") + "'"
    files = {place: re.sub(r"[$`\\]", r"\\\g<0>", path) for place, path in files.items()}
    return '"' + change(piece[1:-1].replace('\\"', '"'), files).replace('"', '\\"') + '"'


def replaced(text: str, files: Mapping[str, str]) -> str:
    """A text with the paths of files in the place of others, as they are."""
    for place, path in files.items():
        text = text.replace(place, path)
    return text


def needs_file(command: str, path: str, starter: str) -> bool:
    """Whether a command must be written to a file: a JOB_STARTER executes its argument, and this needs a shell."""
    return bool(starter and command) and plain_words(command, path) is None


def script_of(text: pb.JobText, path: str) -> str:
    """What is written into a file to be run: the job's script, or a command that a JOB_STARTER is to execute."""
    if text.script or not needs_file(text.command, path, text.job_starter):
        return text.script
    return f"#!/bin/sh\n{text.command}\n"


def _with_starter(line: str, starter: str) -> str:
    """The JOB_STARTER with a command line in place of ``%USRCMD``, or appended if that is not in it."""
    return starter.replace("%USRCMD", line) if "%USRCMD" in starter else f"{starter} {line}"


def command_argv(command: str, path: str, login_shell: str = "", starter: str = "") -> list[str]:
    """The argument vector for a command that is not in a file."""
    line = f"/bin/sh -c {quote(command)}" if needs_file(command, path, starter) else command
    return _argv(_with_starter(line, starter) if starter else line, path, login_shell)


def _argv(line: str, path: str, login_shell: str) -> list[str]:
    if login_shell:
        return [login_shell, "-l", "-c", line]
    return plain_words(line, path) or ["/bin/sh", "-c", line]


def script_argv(script: str, path: str, login_shell: str = "", starter: str = "") -> list[str]:
    """What is executed for a script that lies at ``path``: its own interpreter, as the kernel reads the first line.

    A JOB_STARTER executes the file itself: it may be a shell that takes one word (``csh -c``).
    """
    interpreter = _interpreter(script)
    if starter:
        return _argv(_with_starter(quote(path), starter), "", login_shell)
    if login_shell:
        return _argv(" ".join(map(quote, [*(interpreter or ["/bin/sh"]), path])), "", login_shell)
    return [*(interpreter or ["/bin/sh"]), path]


def quote(word: str) -> str:
    """A word as a shell reads it back unchanged."""
    if re.fullmatch(r"[A-Za-z0-9_./:,+@%=-]+", word):
        return word
    return "'" + word.replace("'", "'\\''") + "'"


def _interpreter(script: str) -> list[str] | None:
    line = script.partition("\n")[0]
    if not line.startswith("#!"):
        return None
    words = line[2:].strip().split(None, 1)
    return [word.strip() for word in words] or None

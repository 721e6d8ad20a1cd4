"""lsf.conf: `NAME=value` lines, read by every command and every daemon.

Rule: imports nothing but `os`, because each command pays for this module at its start.
"""

import os

SITE_ENVDIR = "/etc/lava"
RUNDIR = "/run/lava"
"""Without LAVA_RUNDIR."""
YES, NO = ("y", "yes", "1", "true"), ("n", "no", "0", "false")
"""In any case."""


def find_envdir(environ: "os._Environ[str] | dict[str, str]") -> str | None:
    """The folder of lsf.conf: LSF_ENVDIR, else /etc/lava where it exists, else None."""
    named = environ.get("LSF_ENVDIR")
    if named:
        return named
    return SITE_ENVDIR if os.path.isdir(SITE_ENVDIR) else None


def why_no_conf(folder: str) -> str:
    """Why a daemon cannot start with this folder of lsf.conf, in a line; "" if it can."""
    return "" if os.path.isdir(folder) else f"{folder}: there is no such folder (--conf, LSF_ENVDIR: the one with lsf.conf)"


def read_lsf_conf(path: str) -> dict[str, str]:
    """The parameters of one lsf.conf; the last of several wins. A file that is not there gives {}.

    Lines that are no `NAME=value` are passed over here; `config.read.load` reports them. Other errors of
    reading (permission) are the caller's: OSError.
    """
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    entries, _ = parse_lsf_conf(text)
    return {name: value for name, value, _ in entries}


def value(conf: dict[str, str], environ: "os._Environ[str] | dict[str, str]", name: str, default: str = "") -> str:
    """A parameter that the environment may override: environment, then lsf.conf, then `default`."""
    found = environ.get(name)
    if found is None:
        found = conf.get(name)
    return default if found is None else found


def is_yes(text: str) -> bool:
    """Whether a Y/N setting is Y; what is neither is N."""
    return text.strip().lower() in YES


def parse_lsf_conf(text: str) -> tuple[list[tuple[str, str, int]], list[int]]:
    """-> ([(name, value, line number)], [numbers of lines that could not be read])."""
    entries: list[tuple[str, str, int]] = []
    bad: list[int] = []
    for number, line in _joined_lines(text):
        name, equals, rest = line.partition("=")
        name = name.strip()
        if name.startswith("export "):
            name = name[7:].strip()
        if not equals or not _is_name(name):
            bad.append(number)
            continue
        entries.append((name, _unquoted(_without_comment(rest).strip()), number))
    return entries, bad


def _joined_lines(text: str) -> list[tuple[int, str]]:
    """Lines with a trailing backslash joined to their next; comment and empty lines dropped."""
    lines: list[tuple[int, str]] = []
    parts: list[str] = []
    start = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip("\r\t\f\v \0")
        if not parts:
            start = number
            if not line or line.startswith("#"):
                continue
        if line.endswith("\\"):
            parts.append(line[:-1])
            continue
        parts.append(line)
        lines.append((start, "".join(parts)))
        parts = []
    if parts:
        lines.append((start, "".join(parts)))
    return lines


def _is_name(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _without_comment(text: str) -> str:
    """Cut at a `#` that follows a blank and stands outside quotes (a URL may hold a bare `#`)."""
    quote = ""
    for position, char in enumerate(text):
        if quote:
            if char == quote:
                quote = ""
        elif char in "\"'" and text.find(char, position + 1) >= 0:
            quote = char
        elif char == "#" and (position == 0 or text[position - 1] in " \t"):
            return text[:position]
    return text


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in "\"'" and text[-1] == text[0] and text[0] not in text[1:-1]:
        return text[1:-1]
    return text


def open_quote(text: str) -> str:
    """The quotation mark that a value begins with and that nothing closes; "": there is none."""
    return text[0] if text[:1] in ("'", '"') and text.count(text[0]) == 1 else ""


LOG_LEVELS = {
    "LOG_EMERG": 50,
    "LOG_ALERT": 50,
    "LOG_CRIT": 50,
    "LOG_ERR": 40,
    "LOG_WARNING": 30,
    "LOG_NOTICE": 20,
    "LOG_INFO": 20,
    "LOG_DEBUG": 10,
    "LOG_DEBUG1": 10,
    "LOG_DEBUG2": 10,
    "LOG_DEBUG3": 10,
}
"""LSF_LOG_MASK to the levels of Python's logging."""


def level_of(mask: str) -> int:
    """The level of a mask; "" and an unknown one are LOG_INFO, which says what becomes of each job."""
    mask = mask.upper()
    return LOG_LEVELS["LOG_DEBUG"] if mask.startswith("LOG_DEBUG") else LOG_LEVELS.get(mask, LOG_LEVELS["LOG_INFO"])

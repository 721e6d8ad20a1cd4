"""The names that options have in an esub's parameter file, and the way there and back.

Rule: values as they were given, but for limits of time in seconds, and dates in seconds since 1970, as LSF has them.
"""

from __future__ import annotations

import re
import time

from cli.client.fail import Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.options.options import Options
    from cli.submit.script import Work

RESET = "SUB_RESET"
TEXTS = {
    "LSB_SUB_BEGIN_TIME": "b",
    "LSB_SUB_TERM_TIME": "t",
    "LSB_SUB_DEPEND_COND": "w",
    "LSB_SUB_ERR_FILE": "e",
    "LSB_SUB_OUT_FILE": "o",
    "LSB_SUB_IN_FILE": "i",
    "LSB_SUB2_IN_FILE_SPOOL": "is",
    "LSB_SUB_HOSTS": "m",
    "LSB_SUB_JOB_NAME": "J",
    "LSB_SUB_JOB_DESCRIPTION": "Jd",
    "LSB_SUB_LOGIN_SHELL": "L",
    "LSB_SUB_MAIL_USER": "u",
    "LSB_SUB_PRE_EXEC": "E",
    "LSB_SUB_PROJECT_NAME": "P",
    "LSB_SUB_QUEUE": "q",
    "LSB_SUB_RES_REQ": "R",
    "LSB_SUB_RLIMIT_CORE": "C",
    "LSB_SUB_RLIMIT_CPU": "c",
    "LSB_SUB_RLIMIT_DATA": "D",
    "LSB_SUB_RLIMIT_FSIZE": "F",
    "LSB_SUB_RLIMIT_PROCESS": "p",
    "LSB_SUB_RLIMIT_RSS": "M",
    "LSB_SUB_RLIMIT_RUN": "W",
    "LSB_SUB_RLIMIT_STACK": "S",
    "LSB_SUB_RLIMIT_SWAP": "v",
    "LSB_SUB_RLIMIT_THREAD": "T",
    "LSB_SUB_USER_GROUP": "G",
    "LSB_SUB_USER_PRIORITY": "sp",
    "LSB_SUB2_JOB_PRIORITY": "sp",
    "LSB_SUB_WINDOW_SIG": "s",
    "LSB_SUB_JOB_GROUP": "g",
    "LSB_SUB2_JOB_GROUP": "g",
    "LSB_SUB_JOB_WARNING_ACTION": "wa",
    "LSB_SUB_JOB_ACTION_WARNING_TIME": "wt",
    "LSB_SUB_EXTSCHED_PARAM": "ext",
    "LSB_SUB2_LICENSE_PROJECT": "Lp",
    "LSB_SUB2_SLA": "sla",
    "LSB_SUB2_USE_RSV": "U",
    "LSB_SUB3_APP": "app",
    "LSB_SUB3_CWD": "cwd",
    "LSB_SUB3_JOB_REQUEUE": "Q",
    "LSB_SUB3_MIG": "mig",
    "LSB_SUB3_POST_EXEC": "Ep",
    "LSB_SUB3_RESIZE_NOTIFY_CMD": "rnc",
    "LSB_SUB3_RUNTIME_ESTIMATION": "We",
    "LSB_SUB3_RUNTIME_ESTIMATION_ACC": "We+",
    "LSB_SUB3_RUNTIME_ESTIMATION_PERC": "Wep",
    "LSB_SUB4_ELIGIBLE_PEND_TIME_LIMIT": "eptl",
    "LSB_SUB4_NETWORK": "network",
    "LSB_SUB4_OUTDIR": "outdir",
    "LSB_SUB4_PEND_TIME_LIMIT": "ptl",
    "LSB_SUB6_GPU_REQ": "gpu",
    "LSF_SUB4_SUB_ENV_VARS": "env",
    "LSB_SUB_CHKPNT": "k",
}
FLAGS = {
    "LSB_SUB_EXCLUSIVE": "x",
    "LSB_SUB_HOLD": "H",
    "LSB_SUB_NOTIFY_BEGIN": "B",
    "LSB_SUB_NOTIFY_END": "N",
    "LSB_SUB_INTERACTIVE": "I",
    "LSB_SUB_PTY": "Ip",
    "LSB_SUB_PTY_SHELL": "Is",
    "LSB_SUB_RERUNNABLE": "r",
    "LSB_SUB2_JOB_CMD_SPOOL": "Zs",
    "LSB_SUB3_AUTO_RESIZABLE": "ar",
    "LSB_SUB3_USER_SHELL_LIMITS": "ul",
    "LSB_SUB4_ORPHAN_TERM_NO_WAIT": "ti",
}
OVERWRITES = {"LSB_SUB_OUT_FILE": "oo", "LSB_SUB_ERR_FILE": "eo"}
SECONDS = ("c", "W", "We")
DATES = ("b", "t")
LAST_DATE = 253_370_764_800
"""The year 9999."""
FILES = "LSB_SUB_OTHER_FILES"
CHECKPOINT = ("LSB_SUB_CHKPNT_DIR", "LSB_SUB_CHKPNT_PERIOD", "LSB_SUB3_INIT_CHKPNT_PERIOD", "LSB_SUB_CHKPNT_METHOD")
"""-k taken apart; its periods in seconds."""
COMMANDS = {"bmod": "LSB_SUB_MODIFY", "brestart": "LSB_SUB_RESTART"}


def names_of(value: str) -> list[tuple[str, list[str]]]:
    """``license fluent(a,b)`` -> [("license", []), ("fluent", ["a", "b"])]."""
    found: list[tuple[str, list[str]]] = []
    rest = value.strip()
    while rest:
        end = next((at for at, char in enumerate(rest) if char in " \t("), len(rest))
        name, rest = rest[:end], rest[end:].lstrip()
        arguments: list[str] = []
        if rest.startswith("("):
            inside, closed, rest = rest[1:].partition(")")
            if not closed:
                raise Fail(f"{value}: Bad esub specification")
            arguments = [argument.strip() for argument in inside.split(",")] if inside.strip() else []
        if not name or not name.replace("_", "").replace("-", "").isalnum():
            raise Fail(f"{name or value}: Bad esub name")
        found.append((name, arguments))
        rest = rest.lstrip()
    return found


def file_lines(work: Work | None, options: Options, asked: list[str], command: str = "bsub") -> str:
    """The parameter file."""
    lines = [_line("LSB_SUB_ADDITIONAL", " ".join(asked))] if asked else []
    lines += [f"{COMMANDS[command]}=Y"] if command in COMMANDS else []
    for variable, name in TEXTS.items():
        value = options.get(name, options.get(OVERWRITES.get(variable, ""), False))
        if isinstance(value, list):
            value = " && ".join(value) if name == "R" and len(value) > 1 else value[-1]
        if isinstance(value, str):
            lines.append(_line(variable, _shown(name, value)))
        elif command == "bmod" and name + "n" in options:
            lines.append(_line(variable, RESET))
    lines += [f"{variable}=Y" for variable, name in FLAGS.items() if options.get(name)]
    for name in ("W", "c"):
        host = str(options.get(name, "")).partition("/")[2]
        if host:
            lines.append(_line("LSB_SUB_HOST_SPEC", host))
            break
    slots = options.get("n")
    if isinstance(slots, str):
        least, _, most = slots.partition(",")
        lines += [f"LSB_SUB_NUM_PROCESSORS={least}", f"LSB_SUB_MAX_NUM_PROCESSORS={most or least}"]
    files = options.get("f")
    if isinstance(files, list):
        lines += [f"{FILES}={len(files)}", *(_line(f"{FILES}_{number}", file) for number, file in enumerate(files))]
    folder = options.get("k")
    if isinstance(folder, str):
        lines += [_line(name, value) for name, value in zip(CHECKPOINT, _parts_of_k(folder), strict=True) if value]
    if work is not None and work.command:
        lines.append(_line("LSB_SUB_COMMAND_LINE", work.command))
    return "".join([line + "\n" for line in lines])


def _line(variable: str, value: str) -> str:
    """As a shell reads it back."""
    for char in '\\"$`':
        value = value.replace(char, "\\" + char)
    return f'{variable}="{value}"'


def _shown(name: str, value: str) -> str:
    if name in SECONDS:
        return _seconds(value)
    return _epoch(value) if name in DATES else value


def _epoch(value: str) -> str:
    """``[[month:]day:]hour:minute`` as seconds since 1970, the next time that it comes; what is no date stays."""
    words = value.split(":")
    if not 2 <= len(words) <= 4 or not all(word.isascii() and word.isdigit() and len(word) < 3 for word in words):
        return value
    now = time.localtime()
    numbers = [int(word) for word in words]
    given = [now.tm_year, now.tm_mon, now.tm_mday][: 5 - len(numbers)] + numbers
    step = (None, None, 2, 1, 0)[len(numbers)]  # what comes next: another day, month or year
    try:
        at = _seconds_of(given)
        if at < time.time() - 60 and step is not None:
            given[step] += 1
            at = _seconds_of(given)
    except (OverflowError, ValueError):
        return value
    return str(int(at))


def _seconds_of(date: list[int]) -> float:
    year, month, day, hour, minute = date
    return time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))


def _parts_of_k(value: str) -> tuple[str, str, str, str]:
    """``folder [init=n] [period] [method=m]`` -> as CHECKPOINT has them."""
    folder, period, initial, method = "", "", "", ""
    for word in value.split():
        if word.startswith("init="):
            initial = word[5:]
        elif word.startswith("method="):
            method = word[7:]
        elif folder:
            period = word
        else:
            folder = word
    seconds = [str(int(word) * 60) if word.isascii() and word.isdigit() else word for word in (period, initial)]
    return folder, seconds[0], seconds[1], method


def _seconds(value: str) -> str:
    hours, colon, minutes = value.partition("/")[0].rpartition(":")
    if not minutes.isdecimal() or (colon and not hours.isdecimal()):
        return value
    return str((int(hours or 0) * 60 + int(minutes)) * 60)


def parse_assignments(text: str) -> dict[str, str]:
    """``NAME=value`` lines as an esub writes them: value bare, or in single or double quotes."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        name = name.strip().removeprefix("export ").strip()
        value = value.strip()
        if not equals or not name.isidentifier():
            continue
        if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]:
            value = value[1:-1] if value[0] == "'" else re.sub(r'\\(["\\$`])', r"\1", value[1:-1])
        found[name] = value
    return found


def from_file(changes: dict[str, str], work: Work | None, options: Options, command: str = "bsub") -> None:
    """Change options and command as an esub wants it."""
    for variable, value in changes.items():
        if variable in FLAGS:
            on = value.lower() in ("y", "yes", "1")
            _set(options, FLAGS[variable], True if on else RESET, command)
        elif variable in TEXTS:
            _set_text(options, variable, TEXTS[variable], value, command)
    slots = [changes.get(name, "") for name in ("LSB_SUB_NUM_PROCESSORS", "LSB_SUB_MAX_NUM_PROCESSORS")]
    if RESET in slots:
        _set(options, "n", RESET, command)
    elif any(slots):
        least, most = slots[0] or slots[1], slots[1] or slots[0]
        options["n"] = least if least == most else f"{least},{most}"
    files = [value for name, value in changes.items() if name.startswith(FILES + "_")]
    if changes.get(FILES) == RESET:
        _set(options, "f", RESET, command)
    elif files:
        options["f"] = files
    _set_checkpoint(options, changes, command)
    new = changes.get("LSB_SUB_COMMAND_LINE")
    if new and work is not None and not work.script:
        work.command = new


def _set_text(options: Options, variable: str, name: str, value: str, command: str) -> None:
    overwrite = OVERWRITES.get(variable)
    if overwrite in options:
        name = overwrite or name
    number = value.isascii() and value.isdigit()
    if name == "R" and value != RESET:
        options["R"] = [value]
    elif name in SECONDS and number:
        _set(options, name, str(-(-int(value) // 60)), command)
    elif name in DATES and number:
        at = time.localtime(min(int(value), LAST_DATE) + 59)
        _set(options, name, time.strftime("%Y:%m:%d:%H:%M", at), command)
    else:
        _set(options, name, value, command)


def _set_checkpoint(options: Options, changes: dict[str, str], command: str) -> None:
    given = [changes.get(name) for name in CHECKPOINT]
    if given[0] == RESET:
        _set(options, "k", RESET, command)
    elif any(given):
        old = _parts_of_k(str(options.get("k", "")))
        folder, period, initial, method = (was if new is None else new for was, new in zip(old, given, strict=True))
        words = [folder, _minutes(period), f"init={_minutes(initial)}" if initial else "", f"method={method}" if method else ""]
        options["k"] = " ".join([word for word in words if word])


def _minutes(seconds: str) -> str:
    return str(-(-int(seconds) // 60)) if seconds.isascii() and seconds.isdigit() else seconds


def _set(options: Options, name: str, value: str | bool, command: str) -> None:
    """RESET takes the option away, and with bmod what the job has."""
    if value == RESET or value == "":
        options.pop(name, None)
        if value == RESET and command == "bmod":
            options[name + "n"] = True
    else:
        options.pop(name + "n", None)
        options[name] = value

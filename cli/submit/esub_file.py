"""The parameter file of esubs: written from the options of a submission, and options changed by what an esub writes.

Rule: values as they were given, but for limits of time in seconds, and dates in seconds since 1970, as LSF has them.
"""

from __future__ import annotations

import re
import time

from cli.client.context import Fail
from proto.numbers import find_number
from proto.options import BY_NAME, DATE, DURATION, FLAG, OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options
    from cli.submit.script import Work

RESET = "SUB_RESET"
LAST_DATE = 253_370_764_800
"""The year 9999."""
FILES = "LSB_SUB_OTHER_FILES"
CHECKPOINT = ("LSB_SUB_CHKPNT_DIR", "LSB_SUB_CHKPNT_PERIOD", "LSB_SUB3_INIT_CHKPNT_PERIOD", "LSB_SUB_CHKPNT_METHOD")
"""-k taken apart; its periods in seconds."""
VARIABLES: dict[str, list[str]] = {}
"""Each variable that stands for an option, with the options' names: of two that share one, the first is the usual one."""
for _option in sorted(OPTIONS, key=lambda option: option.takes == FLAG):  # flags come last in the file
    for _variable in _option.esub.split():
        VARIABLES.setdefault(_variable, []).append(_option.name)
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
    lines += [line for variable, names in VARIABLES.items() for line in _option_lines(variable, names, options, command)]
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


def _option_lines(variable: str, names: list[str], options: Options, command: str) -> list[str]:
    """The line of one variable; none where neither an option nor its reset is given."""
    name = next((name for name in names if name in options), names[0])
    value = options.get(name)
    if BY_NAME[name].takes == FLAG:
        return [f"{variable}=Y"] if value else []
    if isinstance(value, list):
        value = " && ".join(value) if name == "R" and len(value) > 1 else value[-1]
    if isinstance(value, str):
        return [_line(variable, _shown(name, value))]
    return [_line(variable, RESET)] if command == "bmod" and name + "n" in options else []


def _line(variable: str, value: str) -> str:
    """As a shell reads it back."""
    for char in '\\"$`':
        value = value.replace(char, "\\" + char)
    return f'{variable}="{value}"'


def _shown(name: str, value: str) -> str:
    form = BY_NAME[name].form
    if form == DURATION:
        return _seconds(value)
    return _epoch(value) if form == DATE else value


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
    seconds = [word if (minutes := find_number(word)) is None else str(minutes * 60) for word in (period, initial)]
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
        names = VARIABLES.get(variable)
        if names is None:
            continue
        name = next((name for name in names if name in options), names[0])
        if BY_NAME[name].takes == FLAG:
            _set(options, name, True if value.lower() in ("y", "yes", "1") else RESET, command)
        else:
            _set_text(options, name, value, command)
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


def _set_text(options: Options, name: str, value: str, command: str) -> None:
    number = find_number(value, 0, LAST_DATE)
    form = BY_NAME[name].form if number is not None else ""
    if name == "R" and value != RESET:
        options["R"] = [value]
    elif form == DURATION:
        _set(options, name, _minutes(value), command)
    elif form == DATE:
        at = time.localtime((number or 0) + 59)
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
    return seconds if (number := find_number(seconds, 0, LAST_DATE)) is None else str(-(-number // 60))


def _set(options: Options, name: str, value: str | bool, command: str) -> None:
    """RESET takes the option away, and with bmod what the job has."""
    if value == RESET or value == "":
        options.pop(name, None)
        if value == RESET and command == "bmod":
            options[name + "n"] = True
    else:
        options.pop(name + "n", None)
        options[name] = value

"""The names that options have in an esub's parameter file, and the way there and back.

Rule: values as they were given, but for run and CPU limits, which LSF writes in seconds.
"""

from __future__ import annotations

from cli.common.fail import Fail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.common.options import Options
    from cli.common.script import Work

RESET = "SUB_RESET"
TEXTS = {
    "LSB_SUB_BEGIN_TIME": "b", "LSB_SUB_TERM_TIME": "t", "LSB_SUB_DEPEND_COND": "w", "LSB_SUB_ERR_FILE": "e",
    "LSB_SUB_OUT_FILE": "o", "LSB_SUB_IN_FILE": "i", "LSB_SUB_HOSTS": "m", "LSB_SUB_JOB_NAME": "J",
    "LSB_SUB_JOB_DESCRIPTION": "Jd", "LSB_SUB_LOGIN_SHELL": "L", "LSB_SUB_MAIL_USER": "u", "LSB_SUB_PRE_EXEC": "E",
    "LSB_SUB_PROJECT_NAME": "P", "LSB_SUB_QUEUE": "q", "LSB_SUB_RES_REQ": "R", "LSB_SUB_RLIMIT_CORE": "C",
    "LSB_SUB_RLIMIT_CPU": "c", "LSB_SUB_RLIMIT_DATA": "D", "LSB_SUB_RLIMIT_FSIZE": "F",
    "LSB_SUB_RLIMIT_PROCESS": "p", "LSB_SUB_RLIMIT_RSS": "M", "LSB_SUB_RLIMIT_RUN": "W",
    "LSB_SUB_RLIMIT_STACK": "S", "LSB_SUB_RLIMIT_SWAP": "v", "LSB_SUB_RLIMIT_THREAD": "T",
    "LSB_SUB_USER_GROUP": "G", "LSB_SUB_USER_PRIORITY": "sp", "LSB_SUB_WINDOW_SIG": "s",
    "LSB_SUB_JOB_GROUP": "g", "LSB_SUB_JOB_WARNING_ACTION": "wa", "LSB_SUB_JOB_ACTION_WARNING_TIME": "wt",
    "LSB_SUB3_APP": "app", "LSB_SUB3_CWD": "cwd", "LSB_SUB3_JOB_REQUEUE": "Q", "LSB_SUB3_POST_EXEC": "Ep",
    "LSB_SUB3_RUNTIME_ESTIMATION": "We", "LSB_SUB4_OUTDIR": "outdir", "LSB_SUB6_GPU_REQ": "gpu",
    "LSF_SUB4_SUB_ENV_VARS": "env", "LSB_SUB_CHKPNT": "k",
}  # fmt: skip
FLAGS = {
    "LSB_SUB_EXCLUSIVE": "x", "LSB_SUB_HOLD": "H", "LSB_SUB_NOTIFY_BEGIN": "B", "LSB_SUB_NOTIFY_END": "N",
    "LSB_SUB_INTERACTIVE": "I", "LSB_SUB_PTY": "Ip", "LSB_SUB_PTY_SHELL": "Is",
    "LSB_SUB_RERUNNABLE": "r", "LSB_SUB3_USER_SHELL_LIMITS": "ul",
}  # fmt: skip
OVERWRITES = {"LSB_SUB_OUT_FILE": "oo", "LSB_SUB_ERR_FILE": "eo"}
SECONDS = ("c", "W")


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


def file_lines(work: Work | None, options: Options, asked: list[str]) -> str:
    """The parameter file."""
    lines = [_line("LSB_SUB_ADDITIONAL", " ".join(asked))] if asked else []
    for variable, name in TEXTS.items():
        value = options.get(name, options.get(OVERWRITES.get(variable, ""), False))
        if isinstance(value, list):
            value = " && ".join(value) if name == "R" and len(value) > 1 else value[-1]
        if isinstance(value, str):
            lines.append(_line(variable, _seconds(value) if name in SECONDS else value))
    lines += [f"{variable}=Y" for variable, name in FLAGS.items() if options.get(name)]
    slots = options.get("n")
    if isinstance(slots, str):
        least, _, most = slots.partition(",")
        lines += [f"LSB_SUB_NUM_PROCESSORS={least}", f"LSB_SUB_MAX_NUM_PROCESSORS={most or least}"]
    if work is not None and work.command:
        lines.append(_line("LSB_SUB_COMMAND_LINE", work.command))
    return "".join([line + "\n" for line in lines])


def _line(variable: str, value: str) -> str:
    return f'{variable}="{value}"'


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
            value = value[1:-1]
        found[name] = value
    return found


def from_file(changes: dict[str, str], work: Work | None, options: Options) -> None:
    """Change options and command as an esub wants it."""
    for variable, value in changes.items():
        if variable in FLAGS:
            _set(options, FLAGS[variable], True if value.lower() in ("y", "yes", "1") else RESET)
        elif variable in TEXTS:
            _set_text(options, variable, TEXTS[variable], value)
    slots = [changes.get(name, "") for name in ("LSB_SUB_NUM_PROCESSORS", "LSB_SUB_MAX_NUM_PROCESSORS")]
    if RESET in slots:
        options.pop("n", None)
    elif any(slots):
        least, most = slots[0] or slots[1], slots[1] or slots[0]
        options["n"] = least if least == most else f"{least},{most}"
    command = changes.get("LSB_SUB_COMMAND_LINE")
    if command and work is not None and not work.script:
        work.command = command


def _set_text(options: Options, variable: str, name: str, value: str) -> None:
    overwrite = OVERWRITES.get(variable)
    if overwrite in options:
        name = overwrite or name
    if name == "R" and value != RESET:
        options["R"] = [value]
    elif name in SECONDS and value.isdecimal():
        _set(options, name, str(-(-int(value) // 60)))
    else:
        _set(options, name, value)


def _set(options: Options, name: str, value: str | bool) -> None:
    if value in (RESET, ""):
        options.pop(name, None)
    else:
        options[name] = value

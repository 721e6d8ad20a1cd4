"""badmin: administer the batch system. Without a subcommand on the command line it reads subcommands from stdin."""

from __future__ import annotations

import os

from cli.client import lsf_file
from cli.client.client import Client, read_conf
from cli.client.context import LSF_FAILED, Context, Fail, finish, start
from cli.client.options import HELP, Table, read_letters, show_version, table_of
from proto.help.usages import BADMIN as USAGE
from proto.help.usages import QUEUE_CHANGES
from proto.numbers import find_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PROMPT = "badmin> "
MIGRATE = "-migrate"
"""hclose --migrate."""
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def run(context: Context) -> int:
    """Run the given subcommand, or read subcommands line by line; the exit status of the last."""
    if context.argv[:1] in (["-h"], ["-help"]):
        context.err(USAGE + "\n")
        return LSF_FAILED
    if context.argv[:1] == ["--help"]:
        context.out(USAGE + "\n")
        return 0
    if context.argv[:1] == ["-V"]:
        show_version(context)
        return 0
    if context.argv:
        return run_subcommand(context, context.argv)
    return _dialogue(context)


def run_subcommand(context: Context, words: list[str]) -> int:
    """Run one subcommand; its exit status. Raises Fail."""
    name, rest = words[0], words[1:]
    if name in ("help", "?") or (rest and rest[0][:1] == "-" and rest[0][1:] in HELP):
        context.err(USAGE + "\n")
        return 0
    if name in ("quit", "q"):
        return 0
    command = COMMANDS.get(name)
    if command is None:
        raise Fail(f"Invalid command <{name}> \n{USAGE}")
    return command(context, name, rest)


def _dialogue(context: Context) -> int:
    status = 0
    pending = b""
    while True:
        context.out(PROMPT)
        while b"\n" not in pending:
            part = os.read(context.stdin, 4096)
            if not part:
                context.out("\n")
                return status
            pending += part
        line, _, pending = pending.partition(b"\n")
        words = line.decode("utf-8", "replace").split()
        if words[:1] in (["quit"], ["q"]):
            return status
        if words:
            status = finish(_Subcommand(words), context)


class _Subcommand:
    """One line of the dialogue, as ``finish`` takes it: a failure ends the line, not the dialogue."""

    def __init__(self, words: list[str]) -> None:
        self.words = words

    def __call__(self, context: Context) -> int:
        return run_subcommand(context, self.words)


def _client(context: Context) -> Client:
    return Client(context, read_conf(context))


def _hosts(context: Context, name: str, words: list[str]) -> int:
    close = name == "hclose"
    table = Table(f"badmin {name}", MIGRATE if close else "", "C", "[host_name ... | host_group ... | all]")
    options, hosts = read_letters(table, words)
    frame = {"ask": "hosts", "hosts": hosts, "close": close, "comment": options.get("C", "")}
    if MIGRATE in options:
        frame["migrate"] = True
    return _switch(context, frame, "Host")


def _gpus(context: Context, name: str, words: list[str]) -> int:
    table = Table(f"badmin {name}", "", "C", "host_name:gpu[,gpu] ...")
    options, gpus = read_letters(table, words)
    if not gpus:
        raise Fail(f"{name}: say which GPUs\n{USAGE}")
    frame = {"ask": "gpus", "gpus": gpus, "close": name == "gpuclose", "comment": options.get("C", "")}
    return _switch(context, frame, "GPU")


def _switch(context: Context, frame: dict[str, object], what: str) -> int:
    """Close or open hosts or GPUs: the outcome for each."""
    ok = _client(context).change(frame)
    status = 0
    verb = "Close" if frame["close"] else "Open"
    for result in ok.get("results") or ():
        name = result["gpu"] if what == "GPU" else result["host"]
        if result.get("ok"):
            context.err(f"{verb} <{name}> ...... done\n")
            if "leave" in result:
                context.err(f"{name}: {_jobs(result['leave'], 'is', 'are')} migrated, {_jobs(result['stay'])} on\n")
        else:
            context.err(f"{verb} <{name}> ...... {what} control failed.: {result.get('why', '')}\n")
            status = LSF_FAILED
    return status


def _jobs(count: int, one: str = "runs", more: str = "run") -> str:
    return f"{count} job {one}" if count == 1 else f"{count} jobs {more}"


def _queues(context: Context, name: str, words: list[str]) -> int:
    options, queues = read_letters(Table(f"badmin {name}", "", "C", "[queue_name ... | all]"), words)
    ok = _client(context).change({"ask": "queues", "queues": queues, "what": name, "comment": options.get("C", "")})
    status = 0
    for result in ok.get("results") or ():
        if result.get("ok"):
            context.out(f"Queue <{result['queue']}> is {QUEUE_CHANGES[name]}\n")
        else:
            context.err(f"{result['queue']}: {result.get('why', '')}\n")
            status = LSF_FAILED
    return status


def _configuration(context: Context, name: str, words: list[str]) -> int:
    from cli.control import configuration

    options, rest = read_letters(Table(f"badmin {name}", "v f", "", "", refused="f" if name == "ckconfig" else ""), words)
    if rest:
        raise Fail(f"Invalid argument <{rest[0]}>\n{USAGE}")
    if name == "ckconfig":
        return configuration.check(context)
    return configuration.reconfigure(context, _client(context), "f" in options, verbose="v" in options)


def _showconf(context: Context, name: str, words: list[str]) -> int:
    from cli.control import configuration

    if len(words) > 2 or words[:1] not in (["mbd"], ["sbd"]):
        raise Fail(f"{name}: say mbd or sbd\n{USAGE}")
    return configuration.show(context, words[0], words[1] if len(words) == 2 else "")


def _history(context: Context, name: str, words: list[str]) -> int:
    options, rest = read_letters(table_of("badmin", name), words)
    lsf_file.send(context, options, [], "MBD_START QUEUE_CTRL HOST_CTRL")
    return _client(context).query({"ask": "query", "command": "badmin", "options": options, "words": [name, *rest]})


def _lease(context: Context, name: str, words: list[str]) -> int:
    if len(words) != 2 or words[0] != "extend":
        raise Fail(f"{name}: say extend and a time, for instance 30m\n{USAGE}")
    seconds = _duration(words[1])
    answer = _client(context).change({"ask": "lease", "seconds": float(seconds)})
    context.out(f"{answer['text']}\n")
    return 0


def _perfmon(context: Context, name: str, words: list[str]) -> int:
    what, rest = (words[0], words[1:]) if words else ("", [])
    if what not in ("start", "stop", "view", "setperiod") or len(rest) > 1 or (what == "setperiod" and not rest):
        raise Fail(f"{name}: say start, stop, view or setperiod\n{USAGE}")
    frame: dict[str, object] = {"ask": "perfmon", "what": what}
    if rest and what == "view" and rest[0] == "-json":
        frame["json"] = True
    elif rest:
        number, _, fraction = rest[0].partition(".")
        period = find_number(number, 1)
        if what not in ("start", "setperiod") or period is None or fraction.strip("0"):
            raise Fail(f"{rest[0]}: Bad sampling period")
        frame["period"] = period
    text = str(_client(context).change(frame).get("text", ""))
    context.out(text + "\n")
    return LSF_FAILED if text.endswith("has not been started") else 0


def _restart(context: Context, name: str, words: list[str]) -> int:
    """mbdrestart: read the files again, which is what a restart of LSF's master is for. Jobs run on."""
    from cli.control import configuration

    options, rest = read_letters(Table(f"badmin {name}", "v f p s", "C"), words)
    if rest:
        raise Fail(f"Invalid argument <{rest[0]}>\n{USAGE}")
    return configuration.reconfigure(context, _client(context), "f" in options, "MBD restart initiated", "v" in options)


def _asked(context: Context, name: str, words: list[str]) -> int:
    _, rest = read_letters(Table(f"badmin {name}", "f", "", "[host_name ... | all]"), words)
    return _client(context).query({"ask": "query", "command": "badmin", "options": {}, "words": [name, *rest]})


def _unsupported(context: Context, name: str, words: list[str]) -> int:
    raise Fail(f"badmin: {name} is not supported by lava: {WHY_NOT[name]}")


def _duration(text: str) -> int:
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    if (count := find_number(number)) is None:
        raise Fail(f"{text}: Bad time specification")
    return count * UNITS[unit]


WHY_NOT = {
    **dict.fromkeys(
        ("mbddebug", "mbdtime", "sbddebug", "sbdtime", "schddebug", "schdtime", "showloglevel", "perflog"),
        "its daemons log to the service manager's journal; badmin perfmon counts what the master does",
    ),
    "diagnose": "see lava why for what a job waits for",
    **dict.fromkeys(("hghostadd", "hghostdel"), "host groups are those of lsb.hosts; change it, then badmin reconfig"),
    "hpower": "it does not switch hosts on and off",
    "rc": "it has no resource connector",
    "security": "see docs/security.md, and badmin showconf mbd for the parameters",
    **dict.fromkeys(("gpdckconfig", "gpddebug", "gpdrestart", "gpdtime"), "there is one cluster"),
    "dprestart": "it stages no data",
    **dict.fromkeys(("lsfproxyd", "lsfpd"), "it needs no proxy for commands"),
}
"""Subcommands of LSF that lava does not need, with the reason that the user reads."""
COMMANDS: dict[str, Callable[[Context, str, list[str]], int]] = {
    "hopen": _hosts,
    "hclose": _hosts,
    "gpuopen": _gpus,
    "gpuclose": _gpus,
    "qopen": _queues,
    "qclose": _queues,
    "qact": _queues,
    "qinact": _queues,
    "ckconfig": _configuration,
    "reconfig": _configuration,
    "showconf": _showconf,
    "hist": _history,
    "hhist": _history,
    "qhist": _history,
    "mbdhist": _history,
    "lease": _lease,
    "mbdrestart": _restart,
    "perfmon": _perfmon,
    **dict.fromkeys(("hrestart", "hshutdown", "hstartup", "showstatus"), _asked),
    **dict.fromkeys(WHY_NOT, _unsupported),
}


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

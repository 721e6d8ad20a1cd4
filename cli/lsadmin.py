"""lsadmin: administer the base system. lava has one system: what LSF splits between lsadmin and badmin, badmin does.

Rule: what reads (``showconf``, ``ckconfig``, ``reconfig``) works; the daemons belong to the site's service manager.
"""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import LSF_FAILED, Context, Fail, start
from cli.client.options import HELP, Table, read_letters, show_version
from proto.help.usages import LSADMIN as USAGE

HOSTS = "limstartup limshutdown limrestart limlock limunlock resstartup resshutdown resrestart"
OTHERS = "limdebug limtime resdebug restime reslogon reslogoff expiry"


def run(context: Context) -> int:
    """Run the subcommand; its exit status. Raises Fail."""
    from cli.control import configuration

    words = context.argv
    if words[:1] == ["--help"]:
        context.out(USAGE + "\n")
        return 0
    if words[:1] in ([], ["-h"], ["-help"], ["help"], ["?"]) or (words[1:] and words[1][:1] == "-" and words[1][1:] in HELP):
        context.err(USAGE + "\n")
        return LSF_FAILED if words[:1] in ([], ["-h"], ["-help"]) else 0
    if words == ["-V"]:
        show_version(context)
        return 0
    if words[0] == "showconf":
        if words[1:2] not in (["lim"], ["res"]):
            raise Fail(f"showconf: say lim or res\n{USAGE}")
        return configuration.show(context, words[1])
    if words[0] == "ckconfig":
        if any(word != "-v" for word in words[1:]):
            raise Fail(f"Invalid argument <{words[1]}>\n{USAGE}")
        return configuration.check(context)
    if words[0] == "reconfig":
        options, rest = read_letters(Table("lsadmin reconfig", "v f", ""), words[1:])
        if rest:
            raise Fail(f"Invalid argument <{rest[0]}>\n{USAGE}")
        return configuration.restart_base(context, "f" in options)
    if words[0] in HOSTS.split():
        _, rest = read_letters(Table(f"lsadmin {words[0]}", "f", "l t", "[host_name ... | all]"), words[1:])
        frame = {"ask": "query", "command": "badmin", "options": {}, "words": [words[0], *rest]}
        return Client(context, read_conf(context)).query(frame)
    if words[0] in OTHERS.split():
        raise Fail(f"lsadmin: {words[0]} is not supported by lava: see badmin, and the services of lavad and lava-agent")
    raise Fail(f"Invalid command <{words[0]}> \n{USAGE}")


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

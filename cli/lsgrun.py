"""lsgrun: run a task on each of several hosts, one after the other or (-p) at once; each is an interactive job of one slot."""

from __future__ import annotations

import os

from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, read_command_options, table_of
from cli.terminal.remote_task import chosen_hosts, run_task
from cli.terminal.targets import read_hostfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options, Table


def run(context: Context) -> int:
    """Run the task on each host; the first exit code that is not 0. Raises Fail."""
    table = table_of("lsgrun")
    options, words = read_argv(context, table, read=read_command_options)
    hosts, words = _hosts(context, table, options, words)
    words = words or [_typed(context, table)]
    mode = "Is" if "S" in options else "Ip" if "P" in options else "I"
    if "p" in options:
        return _at_once(context, hosts, words, "v" in options)
    codes = [run_task(context, "lsgrun", words, {"m": host}, mode, "v" in options) for host in hosts]
    return next((code for code in codes if code), 0)


def _hosts(context: Context, table: Table, options: Options, words: list[str]) -> tuple[list[str], list[str]]:
    """-> (hosts, the command). ``-m`` takes all host names that follow it, quoted or not."""
    if "f" in options:
        return read_hostfile(context.path(str(options["f"]))), words
    if "m" in options:
        hosts = str(options["m"]).split()
        if not hosts:
            raise Fail("lsgrun: -m: no host is named")
        return hosts, words
    if "n" not in options and "R" not in options:
        raise Fail(table.usage())
    return chosen_hosts(context, "lsgrun", str(options.get("R", "")), str(options.get("n", "0"))), words


def _typed(context: Context, table: Table) -> str:
    prompt = context.out if os.isatty(context.stdout) else context.err
    lines = []
    while True:
        prompt("Command> ")
        line = os.read(context.stdin, 65536)
        if not line:
            break
        lines.append(line.decode("utf-8", "replace").rstrip("\n"))
    if not "".join(lines).strip():
        raise Fail(table.usage())
    return "; ".join(line for line in lines if line.strip())


def _at_once(context: Context, hosts: list[str], words: list[str], verbose: bool) -> int:
    """Run the task on all hosts at once, each in a process of its own without standard input; as ``run``."""
    pids = []
    for host in hosts:
        pid = os.fork()
        if pid == 0:
            code = 255
            try:
                os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
                code = run_task(context, "lsgrun", words, {"m": host}, "I", verbose)
            except Fail as fail:
                context.err(fail.text + "\n")
            finally:
                os._exit(code)
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return next((128 - code if code < 0 else code for code in codes if code), 0)


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

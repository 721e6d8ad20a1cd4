"""``lava jupyter [bsub options] [-- WORDS]``: JupyterLab as a job, and its address; ``lava jupyter JOB`` tells it again.

The server listens on the loopback interface of its host alone, with the token that Jupyter makes, which stands in the job's
output: from another machine an ssh tunnel leads there. WORDS are for ``jupyter lab``; LAVA_JUPYTER names another program.
"""

from __future__ import annotations

import re
import shlex
import socket
import time
from typing import NamedTuple

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_command_options, show_help
from cli.live.listings import WAITING, harmless, rows
from cli.live.output import end_of_output
from cli.submit.prepare import prepared
from cli.submit.submission import not_done, send
from cli.submit.submit_options import bsub_table, refuse_left_out
from proto.numbers import find_number

_ADDRESS = re.compile(r"https?://(?:127\.0\.0\.1|localhost):(\d+)/[!-~]*")
_PERIOD = 0.5
_LAST = 20
"""Lines of its output that tell why it ended."""


class Server(NamedTuple):
    """Where it listens."""

    address: str
    port: str
    host: str


def words_of_server(environ: dict[str, str], words: list[str]) -> str:
    """The job's command line. A port that is taken is no trouble: Jupyter tries the next ones."""
    program = shlex.split(environ.get("LAVA_JUPYTER", "")) or ["jupyter", "lab"]
    return "exec " + shlex.join([*program, "--no-browser", "--ip=127.0.0.1", "--ServerApp.port_retries=1000", *words])


def find_address(output: str) -> tuple[str, str] | None:
    """(address, port) in what Jupyter has written; the last one, as it has moved on where a port was taken."""
    found = list(_ADDRESS.finditer(output))
    return (harmless(found[-1][0]), found[-1][1]) if found else None


def told(job: str, server: Server, here: str) -> str:
    """What the user reads."""
    text = f"JupyterLab of job {job} on {server.host}: {server.address}\n"
    if server.host.split(".")[0] != here.split(".")[0]:
        text += f"from here, first: ssh -N -L {server.port}:127.0.0.1:{server.port} {server.host}\n"
    return f"{text}bkill {job} ends it.\n"


def run(context: Context) -> int:
    """Submit, and wait until the server listens; 0, or 1 when the job has ended instead."""
    if len(context.argv) == 1 and find_number(context.argv[0]) is not None:
        return _wait(context, context.argv[0])
    table = bsub_table("lava jupyter")
    words, extra = context.argv, []
    if "--" in words:
        at = words.index("--")
        words, extra = words[:at], words[at + 1 :]
    given, command = read_command_options(table, words)
    show_help(context, table, given)
    refuse_left_out("lava jupyter", given)
    if command:
        raise Fail(f"lava jupyter: {command[0]}: words for JupyterLab come after --")
    conf = read_conf(context)
    try:
        made = prepared(context, conf, {"J": "jupyter", **given}, [words_of_server(context.environ, extra)])
        ok = send(context, Client(context, conf), made.frame)
    except Fail as fail:
        raise not_done(context, fail, "lava jupyter", "Job not submitted.") from None
    if made.site is not None:
        made.site.submitted(ok)
    return _wait(context, str(int(ok["job"])))


def _wait(context: Context, job: str) -> int:
    client = Client(context, read_conf(context))
    reason = told_of = ""
    while True:
        found = rows(client, "bjobs", "stat first_host pend_reason", {"a": True}, [job])
        if not found:
            raise Fail(f"lava jupyter: Job <{job}> is not found")
        row = found[0]
        output = "" if row["STAT"] in WAITING else end_of_output(context, job)
        address = find_address(output)
        if row["STAT"] in ("DONE", "EXIT"):
            context.err("".join(f"{harmless(line)}\n" for line in output.splitlines()[-_LAST:]))
            raise Fail(f"lava jupyter: Job <{job}> has ended ({row['STAT']}); lava why {job} tells why", status=1)
        if address is not None:
            context.out(told(job, Server(*address, row["FIRST_HOST"]), socket.gethostname()))
            return 0
        before, reason = reason, row["PEND_REASON"]
        if row["STAT"] in WAITING and reason == before != told_of:
            told_of = reason
            context.err(f"Job {job} waits: {reason.rstrip('; ')}\n")
        time.sleep(_PERIOD)


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

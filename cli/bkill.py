"""bkill: end jobs, or send them a signal."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import LSF_FAILED, Context, Refused, start
from cli.client.options import read_argv, table_of
from cli.client.signals import NAMES, signal_number
from cli.control.control import NEEDED
from cli.control.selection import report, selected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options
    from proto.answers import Result

FINISHED = "Job has already finished"
SAID = {9: "terminated", 18: "resumed", 19: "stopped"}


def run(context: Context) -> int:
    table = table_of("bkill")
    options, words = read_argv(context, table)
    if "l" in options:
        context.out(" ".join(NAMES) + "\n")
        return LSF_FAILED
    wish = options.get("s")
    signal = signal_number(wish) if isinstance(wish, str) else 0
    select = selected(options, words, table, NEEDED)
    frame = {"ask": "kill", "jobs": select, "signal": signal, "now": "r" in options, "reason": options.get("C", "")}
    if "d" in options:
        frame["done"] = True
    client = Client(context, read_conf(context))
    ok = client.change(frame)
    if "g" in options and not ok.get("results"):
        ok = {**ok, "results": _finished(client, options)}
    done = "terminated" if not signal else SAID.get(signal, "signaled")
    return report(context, ok, select, lambda job: f"Job <{job}> is being {done}")


def _finished(client: Client, options: Options) -> list[Result]:
    """One result for each job of a group whose jobs have all finished: LSF names each of them."""
    given = {name: value for name, value in options.items() if name in ("J", "q", "u", "m", "g", "app")}
    given |= {"a": True, "noheader": True, "o": "id jobindex"}
    query = {"ask": "query", "command": "bjobs", "words": [], "options": given}
    try:
        rows = [line.split() for line in client.text_of(query, quiet=True).splitlines()]
    except Refused:
        return []
    ids = sorted({(int(job), int(index)) for job, index in rows})
    return [{"id": f"{job}[{index}]" if index else str(job), "why": FINISHED} for job, index in ids]


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

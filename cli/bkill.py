"""bkill: end jobs, or send them a signal."""

from __future__ import annotations

from cli.common.client import Client, read_conf
from cli.common.context import Context, start
from cli.common.control import NEEDED
from cli.common.fail import LSF_FAILED
from cli.common.jobs import report, selected
from cli.common.options import Table, read_letters, show_help
from cli.common.signals import NAMES, signal_number

SAID = {9: "terminated", 18: "resumed", 19: "stopped"}


def run(context: Context) -> int:
    """Kill or signal what is selected."""
    table = Table(
        "bkill",
        "l r b d cleanup",
        "s J q u m g app C sla stat",
        "[job_ID | 0 | job_ID[index_list]] ...",
        refused="sla cleanup",
    )
    options, words = read_letters(table, context.argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if "l" in options:
        context.out(" ".join(NAMES) + "\n")
        return LSF_FAILED
    wish = options.get("s")
    signal = signal_number(wish) if isinstance(wish, str) else 0
    select = selected(options, words, table, NEEDED)
    frame = {"ask": "kill", "jobs": select, "signal": signal, "now": "r" in options, "reason": options.get("C", "")}
    if "d" in options:
        frame["done"] = True
    ok = Client(context, read_conf(context)).change(frame)
    done = "terminated" if not signal else SAID.get(signal, "signaled")
    return report(context, ok, select, lambda job: f"Job <{job}> is being {done}")


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

"""A job as a card in a notebook; it changes while the job lives, where IPython can show that."""

from __future__ import annotations

import html as escapes
import sys
from typing import TYPE_CHECKING

from lava_client.errors import LavaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future
    from typing import Any

    Rows = Callable[[Sequence[str], str], Sequence[Mapping[str, str]]]
    """What bjobs shows of jobs: ids and the names of fields to a record for each."""

COLOURS = {"PEND": "#b7791f", "RUN": "#2b6cb0", "DONE": "#2f855a", "EXIT": "#c53030"}
FIELDS = "stat queue job_name exec_host run_time mem max_mem cpu_used exit_reason pend_reason"
SHOWN = (
    ("EXEC_HOST", "host"),
    ("RUN_TIME", "run time"),
    ("CPU_USED", "CPU"),
    ("MAX_MEM", "memory, at most"),
    ("PEND_REASON", "waits"),
    ("EXIT_REASON", "ended"),
)


def html(id: str | None, rows: Rows) -> str:
    """The card of a job as it is now."""
    row: Mapping[str, str] = {}
    if id is not None:
        try:
            row = (rows([id], FIELDS) or [row])[0]
        except LavaError as error:
            row = {"EXIT_REASON": str(error)}
    state = row.get("STAT") or "?"
    name = escapes.escape(row.get("JOB_NAME") or "")
    told = [(label, row[field]) for field, label in SHOWN if row.get(field)]
    lines = "".join(
        f"<tr><td style='text-align:left;opacity:.7'>{label}</td><td style='text-align:left'>{escapes.escape(value)}</td></tr>"
        for label, value in told
    )
    colour = COLOURS.get(state, "#718096")
    return (
        f"<div style='border-left:4px solid {colour};padding:.4em .8em;max-width:40em'>"
        f"<b>job {escapes.escape(id or 'not submitted yet')}</b> <span style='color:{colour}'>{escapes.escape(state)}</span>"
        f" {name}<table>{lines}</table></div>"
    )


def display(future: Future[Any], now: Callable[[], str]) -> Callable[[], None] | None:
    """Show the card that ``now`` makes, and show it again at the end; what shows it again meanwhile, None where nothing can."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython and ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        sys.stdout.write(f"{future!r}\n")
        return None
    made = ipython.display.HTML
    shown = ipython.display.display(made(now()), display_id=True)

    def again(_: object = None) -> None:
        shown.update(made(now()))

    future.add_done_callback(again)
    return again

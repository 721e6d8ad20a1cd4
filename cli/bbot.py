"""bbot: move a pending job towards the bottom of its queue."""

from __future__ import annotations

from cli.client.context import Context, start
from cli.control.position import run_place


def run(context: Context) -> int:
    return run_place(context, "bbot", False)


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

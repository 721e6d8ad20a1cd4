"""``lava explain CODE|NAME|TEXT``: what it means and what to do. No cluster is asked."""

from __future__ import annotations

import argparse
import sys

from lavad.queries.explain import table

_MOST = 8
"""Entries that are printed."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="lava explain", description="What a reason, an exit code or a refusal means, and what to do."
    )
    found.add_argument("what", nargs="*", help="a code, a name as TERM_OWNER, or the text that you have read")
    found.add_argument("--markdown", action="store_true", help="print all entries, as docs/reasons.md has them")
    return found


def main(argv: list[str]) -> int:
    """Exit 0; 255 where nothing is known of it."""
    try:
        options = parser().parse_args(argv)
    except SystemExit as ended:
        return 255 if ended.code else 0
    if options.markdown:
        sys.stdout.write(table.document())
        return 0
    asked = " ".join(options.what)
    if not asked.strip():
        sys.stderr.write("lava explain: name a code, or quote a text\n")
        return 255
    found = table.find(asked)
    if not found:
        sys.stderr.write(f"{asked[:200]}: nothing is known of it; docs/reasons.md has all reasons\n")
        return 255
    sys.stdout.write("\n".join(table.told(entry) for entry in found[:_MOST]))
    if len(found) > _MOST:
        sys.stdout.write(f"\n{len(found) - _MOST} more: give more words\n")
    return 0

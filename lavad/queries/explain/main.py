"""``lava explain CODE|NAME|TEXT``: what it means and what to do, also of parameters and options. No cluster is asked."""

from __future__ import annotations

import argparse
import difflib
import sys

from lavad.queries.explain import names, table

_MOST = 8
"""Entries that are printed."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="lava explain",
        description="What a reason, an exit code, a refusal, a parameter or an option means.",
        add_help=False,  # -h, -hl and the like may be what is asked for
        allow_abbrev=False,
    )
    found.add_argument("--help", action="help", help="show this, as -h alone does")
    found.add_argument("what", nargs="*", help="a code, a name as TERM_OWNER or RUNLIMIT, an option as bsub -W, or a text")
    found.add_argument("--names", action="store_true", help="print all names, for completion")
    found.add_argument("--markdown", action="store_true", help="print all entries, as docs/reasons.md has them")
    return found


def _names() -> list[str]:
    """Of parameters and reasons."""
    return sorted({*(one.name for one in names.parameters()), *(entry.name for entry in table.entries() if entry.name)})


def closest(asked: str) -> list[str]:
    """Names that are like it, at most three."""
    return difflib.get_close_matches(asked.rpartition(" ")[2].upper(), _names(), 3)


def main(argv: list[str]) -> int:
    """Exit 0; 255 where nothing is known of it."""
    try:
        options, words = parser().parse_known_args(["--help"] if argv == ["-h"] else argv)
    except SystemExit as ended:
        return 255 if ended.code else 0
    if options.markdown:
        sys.stdout.write(table.document())
        return 0
    if options.names:
        sys.stdout.write("\n".join(_names()) + "\n")
        return 0
    asked = " ".join([*options.what, *words])
    if not asked.strip():
        sys.stderr.write("lava explain: name a code, or quote a text\n")
        return 255
    named = names.find(asked)
    # an option is named by itself; beside a parameter there may be a reason of that name
    found = [one.told() for one in named] + [table.told(one) for one in table.find(asked) if not named or "-" not in asked]
    if not found:
        meant = closest(asked)
        hint = f"did you mean {' or '.join(meant)}?" if meant else "docs/reasons.md has all reasons, docs/reference the rest"
        sys.stderr.write(f"{asked[:200]}: nothing is known of it; {hint}\n")
        return 255
    sys.stdout.write("\n".join(found[:_MOST]))
    if len(found) > _MOST:
        sys.stdout.write(f"\n{len(found) - _MOST} more: give more words\n")
    return 0

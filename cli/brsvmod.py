"""brsvmod: change an advance reservation."""

from __future__ import annotations

from cli.bgadd import change
from cli.brsvadd import count, text
from cli.client.context import Context, start
from cli.client.fail import Fail
from cli.options.options import Table, read_letters, show_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.options.options import Options

VERBS = {
    "addhost": ("n m R", "f"),
    "rmhost": ("n m", ""),
    "adduser": ("u", ""),
    "rmuser": ("u", ""),
    "disable": ("td", "tn f"),
}
FLAGS = "o on nosusp nonsuspn qn En Etn Epn Eptn"
VALUED = "d u q b e t E Et Ep Ept"
REFUSED = "En Etn Epn Eptn E Et Ep Ept"


def run(context: Context) -> int:
    """Change it."""
    argv = context.argv
    verb = argv[0] if argv and argv[0] in VERBS else ""
    valued, flags = VERBS[verb] if verb else (VALUED, FLAGS)
    table = Table("brsvmod " + verb if verb else "brsvmod", flags, valued, "reservation_ID", refused="" if verb else REFUSED)
    options, words = read_letters(table, argv[1:] if verb else argv)
    helped = show_help(context, table, options)
    if helped is not None:
        return helped
    if len(words) != 1 or not options:
        raise Fail(table.usage())
    change(context, "brsvmod", _frame(verb, words[0], options))
    context.out(f'Reservation "{words[0]}" is modified\n')
    return 0


def _frame(verb: str, name: str, options: Options) -> dict[str, Any]:
    frame: dict[str, Any] = {"ask": "changereservation", "name": name, "verb": verb, "slots": count(options, "brsvmod")}
    for option, field in (("m", "hosts"), ("R", "resreq"), ("b", "begin"), ("e", "end"), ("t", "window"), ("td", "dates")):
        frame[field] = text(options, option)
    if verb in ("adduser", "rmuser", ""):
        frame["users"] = text(options, "u")
    for on, off, field in (("o", "on", "open"), ("nosusp", "nonsuspn", "no_suspend")):
        if on in options or off in options:
            frame[field] = on in options
    if "d" in options:
        frame["description"] = text(options, "d")
    if "q" in options or "qn" in options:
        frame["queues"] = text(options, "q")
    return frame


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

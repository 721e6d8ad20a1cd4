"""brsvmod: change an advance reservation."""

from __future__ import annotations

from cli.client.context import Context, Fail, start
from cli.client.options import Table, read_argv, table_of
from cli.control.control import change
from cli.control.values import slot_count, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options

VERBS = {
    "addhost": ("f", "n m R"),
    "rmhost": ("", "n m"),
    "adduser": ("", "u"),
    "rmuser": ("", "u"),
    "disable": ("tn f", "td"),
}
"""Subcommand -> its flags and its options with a value."""


def run(context: Context) -> int:
    argv = context.argv
    verb = argv[0] if argv and argv[0] in VERBS else ""
    table = Table(f"brsvmod {verb}", *VERBS[verb], "reservation_ID") if verb else table_of("brsvmod")
    options, words = read_argv(context, table, 1, 1, argv=argv[1:] if verb else argv)
    if not options:
        raise Fail(table.usage())
    change(context, "brsvmod", _frame(verb, words[0], options))
    context.out(f'Reservation "{words[0]}" is modified\n')
    return 0


def _frame(verb: str, name: str, options: Options) -> Frame:
    frame: Frame = {"ask": "changereservation", "name": name, "verb": verb, "slots": slot_count(options, "brsvmod")}
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
    return start(run, argv)

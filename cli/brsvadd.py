"""brsvadd: add an advance reservation."""

from __future__ import annotations

from cli.bgadd import change
from cli.client.context import Context, start
from cli.client.fail import Fail
from cli.options.options import Table, read_letters, show_help

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.options.options import Options


def table() -> Table:
    """What brsvadd takes; scripts around a reservation (-E) and placeholders (-p) lava has not."""
    valued = "N u g n m R b e t d q unit E Et Ep Ept"
    return Table("brsvadd", "o s f nosusp p", valued, "", refused="p E Et Ep Ept")


def run(context: Context) -> int:
    """Add it, and say how it is called."""
    known = table()
    options, words = read_letters(known, context.argv)
    helped = show_help(context, known, options)
    if helped is not None:
        return helped
    if words or ("s" in options) == bool({"u", "g"} & options.keys()):
        raise Fail(known.usage())
    unit = text(options, "unit") or "slot"
    if unit not in ("slot", "host"):
        raise Fail(f"brsvadd: {unit}: Bad unit, it is slot or host")
    frame = {
        "ask": "addreservation",
        "slots": count(options, "brsvadd"),
        "unit": unit,
        "hosts": text(options, "m"),
        "resreq": text(options, "R"),
        "users": text(options, "u"),
        "group": text(options, "g"),
        "system": "s" in options,
        "begin": text(options, "b"),
        "end": text(options, "e"),
        "window": text(options, "t"),
        "open": "o" in options,
        "name": text(options, "N"),
        "no_suspend": "nosusp" in options,
        "queues": text(options, "q"),
        "description": text(options, "d"),
    }
    name = change(context, "brsvadd", frame)["name"]
    context.out(f'Reservation "{name}" is created\n')
    return 0


def text(options: Options, name: str) -> str:
    """The value of an option, "" where it is not given."""
    value = options.get(name)
    return value if isinstance(value, str) else ""


def count(options: Options, command: str) -> int:
    """-n; 0 where it is not given."""
    value = text(options, "n")
    if not value:
        return 0
    if not (value.isascii() and value.isdigit() and 0 < int(value) < 2**31):
        raise Fail(f"{command}: {value}: The number of slots or hosts must be a positive integer")
    return int(value)


def main(argv: list[str] | None = None) -> int:
    """The command."""
    return start(run, argv)

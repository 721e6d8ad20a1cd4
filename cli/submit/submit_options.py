"""The option tables of bsub, bmod and brestart, which of two options counts, and what ``-env`` makes of an environment.

Rule: values stay raw; the master reads them.
"""

from __future__ import annotations

from cli.client.context import Context, Fail
from cli.client.options import Table
from proto.options import BY_NAME, FLAG, LEFT_OUT, OPTIONS, VALUES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cli.client.options import Options
    from proto.options import Takes

REPEATED = " ".join([option.name for option in OPTIONS if option.takes == VALUES])
SUBMIT_DEFAULTS = (("LSB_DEFAULTQUEUE", "q"), ("LSB_DEFAULTPROJECT", "P"), ("LSB_DEFAULT_JOBGROUP", "g"))


def bsub_table(command: str = "bsub") -> Table:
    """What bsub takes."""
    rows = [(option.name, option.takes) for option in OPTIONS if option.only != "bmod"]
    reasons = {option.name: option.unsupported for option in OPTIONS if option.unsupported}
    return _table(command, rows, "[command [argument ...]]", reasons)


def bmod_table() -> Table:
    """bsub's options, and each of them with an ``n`` behind it, which resets it."""
    known = sorted([option for option in OPTIONS if option.only != "bsub"], key=lambda option: option.bmod != option.takes)
    rows = [(option.name, option.bmod) for option in known]
    forms = [option for option in known if not option.only and option.no_reset != ""]
    first = next(place for place, option in enumerate(known) if option.takes != FLAG)
    rows[first:first] = [(option.name + "n", FLAG) for option in forms]  # behind the flags, as the usage shows them
    reasons = {option.name: option.unsupported for option in known if option.unsupported}
    refused = {option.name + "n": option.unsupported or option.no_reset or "" for option in forms if not option.has_reset}
    return _table("bmod", rows, "job_ID | job_ID[index_list]", {**reasons, **refused})


def _table(command: str, rows: Iterable[tuple[str, Takes]], words: str, reasons: dict[str, str]) -> Table:
    rows = list(rows)
    return Table(
        command,
        " ".join([name for name, takes in rows if takes == FLAG]),
        " ".join([name for name, takes in rows if takes != FLAG]),
        words,
        " ".join(reasons),
        REPEATED,
    ).knowing(
        reasons,
        {option.name: option.ignored for option in OPTIONS if option.ignored},
        {option.name: option.same_as for option in OPTIONS if option.same_as},
    )


def refuse_left_out(command: str, options: Options) -> None:
    """Raises Fail for an option of bsub that this subcommand of lava does not take."""
    for name in LEFT_OUT[command]:
        if name in options:
            raise Fail(f"{command}: -{name} cannot be given here")


def last_rival(options: Options) -> Options:
    """Of options that exclude each other the one given last."""
    for name in list(options):
        rival = BY_NAME[name].rival if name in BY_NAME else ""
        if rival in options:
            given = [one for one in options if one in (name, rival)]
            del options[given[0]]
    return options


def merged(below: Options, above: Options) -> Options:
    """``above`` (the command line) wins over ``below`` (the script), a repeated option as a whole."""
    both = {name: value for name, value in below.items() if name not in above}
    both.update(above)
    return last_rival(both)


def with_defaults(context: Context, options: Options) -> Options:
    """Queue, project and job group that the environment names, where no option does."""
    below: Options = {}
    for variable, option in SUBMIT_DEFAULTS:
        value = context.environ.get(variable)
        if value:
            below[option] = value
    return merged(below, options)


def propagated(environ: dict[str, str], wish: str | None) -> dict[str, str]:
    """The environment that a job gets: ``-env``'s ``none``, ``all, ~A, B=1`` or ``A, B=1``; without it all."""
    if wish is None:
        return dict(environ)
    items = _split_items(wish)
    kept: dict[str, str] = {}
    for place, item in enumerate(items):
        name, equals, value = item.partition("=")
        name = name.strip()
        if name in ("all", "none") and not equals and place == 0:
            kept = dict(environ) if name == "all" else {}
        elif name.startswith("~") and not equals:
            kept.pop(name[1:].strip(), None)
        elif not name or any(char in "~\"', " for char in name) or name in ("all", "none"):
            raise Fail(f"{item}: Bad -env specification")
        elif equals:
            kept[name] = _unquoted(value.strip())
        elif name in environ:
            kept[name] = environ[name]
    return kept


def _split_items(text: str) -> list[str]:
    items = [""]
    quote = ""
    for char in text:
        if char == "," and not quote:
            items.append("")
            continue
        if char == quote:
            quote = ""
        elif char in "'\"" and not quote and items[-1].endswith("="):
            quote = char
        items[-1] += char
    if quote:
        raise Fail(f"{text}: Bad -env specification")
    return [item.strip() for item in items if item.strip()]


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] in "'\"" and value[-1] == value[0] else value

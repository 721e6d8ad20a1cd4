"""Which jobs a command means, and the lines about what was done to each."""

from __future__ import annotations

from cli.client.context import LSF_FAILED, Context, Fail
from proto.numbers import find_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.client.options import Options, Table
    from proto.answers import Answer

    Selection = dict[str, str | list[str]]
    """The fields of ``asks.Select``."""

LARGEST_ID = 2**31 - 1
FILTERS = (
    ("J", "name"),
    ("q", "queue"),
    ("u", "user"),
    ("m", "host"),
    ("g", "group"),
    ("app", "app"),
    ("sla", "service_class"),
    ("stat", "state"),
)


class Wording:
    """How a command words a refusal: ``colon`` behind the job; a refusal about one of the names in ``alone`` names no job;
    with one in ``harmless`` the command still exits 0.
    """

    __slots__ = ("alone", "colon", "harmless")

    def __init__(self, colon: str = ":", alone: list[str] | tuple[str, ...] = (), harmless: tuple[str, ...] = ()) -> None:
        self.colon = colon
        self.alone = alone
        self.harmless = harmless


def check_id(word: str) -> str:
    """The word, if it is a job id: ``12``, ``12[3]``, ``12[1-5:2,8]``. Raises Fail."""
    number, bracket, rest = word.partition("[")
    good = find_number(number, 0, LARGEST_ID) is not None
    if good and bracket:
        inside = rest[:-1]
        good = rest.endswith("]") and inside != "" and all(char in "0123456789-:,% " for char in inside)
    if not good:
        raise Fail(f"{word}: Illegal job ID.")
    return word


def selected(options: Options, words: list[str], table: Table, needed: str = "") -> Selection:
    """The fields of ``asks.Select``. ``needed``: the refusal where neither an id nor a filter is given ("": allowed)."""
    chosen: Selection = {}
    ids = [check_id(word) for given in words for word in given.split()]
    if ids:
        chosen["ids"] = ids
    for option, field in FILTERS:
        value = options.get(option)
        if isinstance(value, str):
            chosen[field] = value
    if not chosen and needed:
        raise Fail(f"{needed}\n{table.usage()}")
    return chosen


def report(context: Context, ok: Answer, select: Selection, done: Callable[[str], str], wording: Wording | None = None) -> int:
    """Print the result for each job; the exit status."""
    wording = wording or Wording()
    results = ok.get("results") or []
    status = 0
    for result in results:
        if result.get("ok"):
            context.out(f"{done(str(result['id']))}\n")
        else:
            why = str(result.get("why", ""))
            alone = why.partition(": ")[0] in wording.alone
            context.err(f"{why}\n" if alone else f"Job <{result['id']}>{wording.colon} {why}\n")
            status = status if why in wording.harmless else LSF_FAILED
    if not results:
        none = str(ok.get("none") or "No matching job found")
        named = select.get("name") and select.get("ids", ["0"]) == ["0"]
        context.err(f"Job <{select['name']}> is not found\n" if named else f"{none}\n")
        status = LSF_FAILED
    return status

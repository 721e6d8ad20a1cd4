"""bresize: release slots of a running job, ask for more, or cancel a request."""

from __future__ import annotations

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, start
from cli.client.options import read_argv, table_of
from cli.control.selection import check_id
from proto.numbers import find_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from cli.client.options import Options, Table


def _frame(table: Table, what: str, options: Options, words: list[str]) -> Frame:
    frame: Frame = {"ask": "resize", "what": what}
    if len(words) != (1 if what == "cancel" else 2):
        raise Fail(table.usage())
    frame["job"] = check_id(words[-1])
    if what == "cancel":
        if options:
            raise Fail(table.usage())
        return frame
    if "rnc" in options and "rncn" in options:
        raise Fail("bresize: options -rnc and -rncn cannot be used together")
    if "rnc" in options and not str(options["rnc"]).startswith("/"):
        raise Fail("The resize notification command must be an absolute path")
    frame |= {"cancel": "c" in options, "silent": "rncn" in options, "command": str(options.get("rnc", ""))}
    if what == "release":
        return frame | {"hosts": words[0]}
    least, comma, most = words[0].partition(",")
    given = (least.strip(), most.strip()) if comma else ("1", least.strip())
    first, last = map(find_number, given)
    if first is None or last is None:
        raise Fail(f"{words[0]}: The number of processors must be a positive integer")
    return frame | {"least": first, "most": last}


def run(context: Context) -> int:
    table = table_of("bresize")
    what = context.argv[0] if context.argv and not context.argv[0].startswith("-") else ""
    options, words = read_argv(context, table, argv=context.argv[1:] if what else context.argv)
    if what not in ("release", "request", "cancel"):
        raise Fail(table.usage())
    Client(context, read_conf(context)).change(_frame(table, what, options, words))
    context.out("Job resize request is submitted.\n")
    return 0


def main(argv: list[str] | None = None) -> int:
    return start(run, argv)

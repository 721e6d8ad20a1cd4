"""Values of options that several commands take: a text, a number of slots, the limit of a job group."""

from __future__ import annotations

from cli.client.context import Fail
from proto.numbers import find_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.options import Options, Table

LARGEST = 2**31 - 1


def text(options: Options, name: str) -> str:
    """The value of an option, "" where it is not given."""
    value = options.get(name)
    return value if isinstance(value, str) else ""


def slot_count(options: Options, command: str) -> int:
    """``-n`` of a reservation; 0 where it is not given. Raises Fail."""
    value = text(options, "n")
    if not value:
        return 0
    if (count := find_number(value, 1, LARGEST)) is None:
        raise Fail(f"{command}: {value}: The number of slots or hosts must be a positive integer")
    return count


def job_group_limit(options: Options, table: Table) -> int | None:
    """``-L`` of a job group; None where it is not given. Raises Fail."""
    value = options.get("L")
    if not isinstance(value, str):
        return None
    if (limit := find_number(value, 0, LARGEST)) is None:
        raise Fail(f"{table.command}: {value}: Bad job group limit.\n{table.usage()}")
    return limit

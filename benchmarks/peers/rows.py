"""What lava and its peers are compared by: rows, and what each contender has to be able to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

ARRAY, SINGLES, SLEEPS, RANKS, HELD = 10_000, 200, 1000, 64, 10_000
"""Elements of the array that is submitted, separate jobs that run, sleeps, ranks, jobs that are pending."""
NO_OPS = 2000
"""Elements of the array that runs; a slow contender has fewer (``Measure.note``)."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    unit: str
    what: str
    more: bool = False
    rounds: int = 3


ROWS = (
    Row("submit_command", "ms", "one command that submits, until it has ended; median of 15"),
    Row("submit_rate_4", "jobs/s", "four loops of that command at once", more=True),
    Row("array_submit_10000", "ms", f"one command that submits {ARRAY} alike"),
    Row("throughput_array", "jobs/s", "/bin/true as an array, 64 slots, submit to the last end", more=True),
    Row("throughput_chunks", "jobs/s", "the same, where the next jobs wait at the host for a slot", more=True),
    Row("throughput_single", "jobs/s", f"{SINGLES} separate jobs of /bin/true, submit to the last end", more=True),
    Row("api_array", "jobs/s", "the array by a program, until the wait of the system's Python API for it returns", more=True),
    Row("api_single", "jobs/s", f"{SINGLES} separate jobs by a program, until that wait returns", more=True),
    Row("turnaround", "ms", "one job on an idle host, submit to its end seen; median of 5"),
    Row("turnaround_command", "ms", "one command that submits /bin/true and waits for its end; median of 7"),
    Row("ranks_64", "ms", f"{RANKS} processes of one parallel job started and ended; median of 5"),
    Row("start_1000", "s", f"{SLEEPS} sleeps on one host until all are there", rounds=1),
    Row("kill_1000", "s", "until none of them is left", rounds=1),
    Row("memory_pending", "bytes", f"growth of the master by each of {HELD} pending jobs", rounds=1),
    Row("query_all_10000", "ms", f"the command that lists {HELD} pending jobs; median of 5"),
    Row("query_one_10000", "ms", "the command that shows one of them; median of 15"),
    Row("restart_10000", "s", f"start of a master with {HELD} pending jobs to its first answer"),
    Row("submit_bulk_10000", "jobs/s", "different jobs submitted by one program", more=True),
)


@dataclass(frozen=True)
class Measure:
    """How a contender does a row: ``value`` is one round of it; ``after``, not timed, puts things back after all rounds."""

    value: Callable[[], float]
    note: str = ""
    after: Callable[[], object] = field(default=lambda: None)


class Contender(Protocol):
    """Lava or a peer. Entered, its daemons run; left, nothing of it remains."""

    name: str

    @property
    def version(self) -> str:
        """What is measured, with its version."""

    def measures(self) -> Mapping[str, Measure]:
        """By row; a row that is not there is one that it cannot do."""

    def __enter__(self) -> Contender: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

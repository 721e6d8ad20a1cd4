"""The table "How it compares" of README.md, from kept results. Pure."""

from __future__ import annotations

from benchmarks.kept.results import Results
from benchmarks.line import Line, short
from benchmarks.peers.rows import RANKS, SINGLES, SLEEPS

BEGIN, END = "<!-- made by make bench-report -->", "<!-- end -->"
"""The lines between which it stands."""
NAMES = {"lava": "lava", "slurm": "Slurm", "hyperqueue": "HyperQueue"}
CHUNKS = "[CHUNK_JOB_SIZE](docs/scheduling.md#short-jobs-in-chunks)"
WHAT = {
    "submit_command": "one submit by its command",
    "throughput_single": f"{SINGLES} separate jobs of /bin/true",
    "throughput_array": "an array of them",
    "throughput_chunks": f"the same, in a queue with {CHUNKS}",
    "turnaround": "one job on an idle host, to its end",
    "start_1000": f"{SLEEPS:,} sleeps on a host, until all are there",
    "memory_pending": "memory of the master for a pending job",
}


def with_table(text: str, results: Results) -> str:
    """The text of README.md with the table of these results; as it is where no other system was measured."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"README.md has no {BEGIN} with {END} after it")
    made = _table(results)
    return f"{before}{begin}\n\n{made}\n\n{end}{after}" if made else text


def _table(results: Results) -> str:
    cells = {(one["row"], one["contender"]): one for one in results.figures if one.get("row") in WHAT}
    names = [name for name in NAMES if any(contender == name for _, contender in cells)]
    if len(names) < 2:
        return ""
    heads = ["lava" if name == "lava" else f"{NAMES[name]} {results.versions[name].split()[-1]}" for name in names]
    rows = [[what, *(_cell(cells.get((row, name))) for name in names)] for row, what in WHAT.items()]
    lines = ["|".join(["", *(f" {cell} " if cell else " " for cell in row), ""]) for row in (["", *heads], *rows)]
    lines.insert(1, "|-" * len(rows[0]) + "|")
    return "\n".join([_where(results), "", *lines, *_ranks(results)])


def _where(results: Results) -> str:
    where = f"One machine of {results.machine.cores} cores, all in turn in the same minutes"
    return f"{where}; [more, and where others are ahead](docs/performance.md):"


def _cell(one: Line | None) -> str:
    return "" if one is None else f"{short(one['value'])} {one['unit']}"


def _ranks(results: Results) -> list[str]:
    ours, theirs = (results.of(f"beside_ranks_{RANKS}_{name}") for name in ("lava", "hydra"))
    if ours is None or theirs is None:
        return []
    return ["", f"A job of {RANKS} ranks takes {_cell(ours)}, under mpiexec.hydra {_cell(theirs)}."]

"""The page of performance from kept results: its text, and its plots by file name. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchmarks.floors import FLOORS
from benchmarks.kept.results import Results
from benchmarks.kept.svg import bars, dots, lines
from benchmarks.kept.targets import TARGETS, met, number, unit_of
from benchmarks.line import Line, short
from benchmarks.peers.rows import ROWS

PLOTS = "performance"
"""The folder of the plots, beside the page."""
LEVELS = (10_000, 100_000)
HOSTS = {"": 1000, "_hosts_100": 100, "_hosts_10": 10}
"""What the metrics of a site of so many hosts end in."""
STEPS = {
    "lavad": "lavad",
    "sched": "its scheduler",
    "query": "its query process",
    "eventlog": "log of events",
    "agent": "agent",
    "starter": "starter",
    "shepherds": "shepherds",
    "jobs": "forked, and the job",
}

OF_MASTER = {"lavad": "lavad", "sched": "its scheduler", "query": "its query process"}
USED_UP = 0.9
"""Cores from which on a process of one thread does no more."""

Plots = dict[str, str]


def page(results: Results) -> tuple[str, Plots]:
    """Markdown, and SVG by file name. What was not measured is left out."""
    figures = {one["metric"]: one for one in results.figures}
    plots: Plots = {}
    parts = [
        _head(results),
        _targets(figures),
        _peers(results, plots),
        _steps(figures, plots),
        _many_jobs(figures, plots),
        _many_hosts(figures, plots),
        _store(figures, plots),
        _flat(figures),
        _all(results.figures),
        _again(results),
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(part for part in parts if part)), plots


def _head(results: Results) -> str:
    machine = results.machine
    where = (
        f"{machine.cores} cores ({machine.processor}), {short(machine.memory_gb)} GB, {machine.system}, Linux {machine.kernel}"
    )
    rows = [
        ("measured", f"{results.date}, in {short(results.minutes)} minutes"),
        ("machine", f"{where}, Python {machine.python}"),
        ("versions", ", ".join(_versions(results))),
        ("load of the machine before", short(results.load) + (f"; {results.note}" if results.note else "")),
        *((what, f"{short(results.floors[name])} ms") for name, what in FLOORS.items() if name in results.floors),
    ]
    return f"""# Performance

What lava does on one machine, beside other systems and beside what the machine itself takes. `make bench-keep` measures it and
writes this page; `make bench-report` rewrites it from the last file in `benchmarks/results`. Absolute figures are of that
machine: what carries over is how one stands to the other, as both were measured in turn in the same minutes. Figures are medians.

{_table(("", ""), rows)}"""


def _versions(results: Results) -> list[str]:
    lava = f"lava {results.versions['lava'].removeprefix('lava ')}" + (f" (commit {results.commit})" if results.commit else "")
    return [lava, *(version for name, version in results.versions.items() if name != "lava")]


def _targets(figures: Mapping[str, Line]) -> str:
    rows = []
    for target in TARGETS:
        value = number(target, dict(figures))
        if value is not None:
            of = unit_of(target, dict(figures))
            limit = f"{'at least' if target.more else 'at most'} {short(target.limit)} {of}"
            rows.append((target.what, limit, f"{short(value)} {of}", "yes" if met(target, value) else "**no**"))
    reached = sum(row[-1] == "yes" for row in rows)
    return f"""## Targets

{reached} of {len(rows)} are met. "Times" beside another system: how many times better lava does, so below 1 the other is ahead;
beside a floor, SQLite or the start: how many times that it is.

{_table(("what", "target", "measured", "met"), rows)}"""


def _peers(results: Results, plots: Plots) -> str:
    by_row = {row.name: [one for one in results.figures if one.get("row") == row.name] for row in ROWS}
    names = list(dict.fromkeys(one["contender"] for found in by_row.values() for one in found))
    if len(names) < 2:
        return ""
    rows = []
    for row in ROWS:
        cells = {one["contender"]: _beside(one) for one in by_row[row.name]}
        if cells:
            rows.append((f"{row.what}, {row.unit}", *(cells.get(name, "") for name in names)))
    for file, unit in (("throughput", "jobs/s"), ("latency", "ms")):
        values = {row.name: {one["contender"]: one["value"] for one in by_row[row.name]} for row in ROWS if row.unit == unit}
        if any(values.values()):
            plots[f"{file}.svg"] = dots(f"Beside other systems: {unit}", unit, values, names)
    leads = {row.name: {one["contender"]: one["ratio"] for one in by_row[row.name] if "ratio" in one} for row in ROWS}
    plots["lead.svg"] = dots("How many times better lava does", "times; right of the line lava is ahead", leads, names, mark=1.0)
    shown = {
        "lead": "how many times better lava does than each other system, by row",
        "throughput": "jobs a second of lava and other systems, by row",
        "latency": "milliseconds of lava and other systems, by row",
    }
    hows = [f"* {row.name}: " + "; ".join(f"{one['contender']} {_how(one)}" for one in by_row[row.name]) for row in ROWS]
    return f"""## Beside other systems

One host of 64 slots. In brackets: how many times better lava does in the same rounds.

{_table(("", *names), rows)}

{chr(10).join(_image(name, said) for name, said in shown.items() if f"{name}.svg" in plots)}
Slurm runs with its plain scheduler and no delay, without accounting and cgroups; it writes a job to disk some seconds after it
has said that it has it, lava before. HyperQueue keeps nothing on disk, and is used from its Python API, as its wheel has no
command. mpiexec.hydra starts ranks, and knows no jobs. How each row was measured:

{chr(10).join(how for how, row in zip(hows, ROWS, strict=True) if by_row[row.name])}
"""


def _beside(one: Line) -> str:
    return short(one["value"]) + (f" ({short(one['ratio'])})" if "ratio" in one else "")


def _how(one: Line) -> str:
    return f"({one['how']})"


def _steps(figures: Mapping[str, Line], plots: Plots) -> str:
    values = {what: figures[f"cpu_per_job_{name}"]["value"] for name, what in STEPS.items() if f"cpu_per_job_{name}" in figures}
    whole = figures.get("cpu_per_job_all")
    if whole is None:
        return ""
    values |= {"all of them": whole["value"], "posix_spawn alone": whole["floor"]}
    plots["steps.svg"] = bars("CPU of each step of a no-op job", "ms", values)
    return f"""## What each step of a job costs

CPU time of a `/bin/true` in an array on one host, by process; {short(whole["ratio"])} times what posix_spawn takes for the
program alone.

{_image("steps", "CPU milliseconds of each process for a no-op job")}"""


def _many_jobs(figures: Mapping[str, Line], plots: Plots) -> str:
    names = {"query_one": "bjobs of one job", "query_all": "bjobs of all"}
    series = {}
    for metric, name in names.items():
        there = [level for level in (0, *LEVELS) if f"{metric}_{level}" in figures]
        points = [(float(level or 1), figures[f"{metric}_{level}"]["value"]) for level in there]
        if len(points) > 1:
            series[name] = points
    if not series:
        return ""
    plots["jobs.svg"] = lines("What a listing takes as pending jobs grow", "pending jobs", "ms", series)
    kinds = {"job": "a separate job", "element": "an element of an array"}
    memory = [
        (f"{what}, of {level:,}", *(short(figures[f"rss_per_{kind}_{name}{level}"]["value"]) for name in ("", "all_")))
        for kind, what in kinds.items()
        for level in LEVELS
        if f"rss_per_{kind}_all_{level}" in figures
    ]
    return f"""## Many jobs

{_image("jobs", "milliseconds of bjobs for one job and for all, at 1 to 100,000 pending jobs")}
{_table(("memory of a pending one, bytes", "lavad", "with its scheduler and query process"), memory)}"""


def _many_hosts(figures: Mapping[str, Line], plots: Plots) -> str:
    if sum(f"scale_starts{end}" in figures for end in HOSTS) < 2:
        return ""
    ends = [end for end in reversed(HOSTS) if f"scale_starts{end}" in figures]

    def points(metric: str) -> list[tuple[float, float]]:
        found = ((float(HOSTS[end]), figures.get(f"{metric}{end}")) for end in ends)
        return [(hosts, one["value"]) for hosts, one in found if one is not None and one["value"] > 0]

    ours = {"submit, median": "scale_submit_p50", "submit, 1 in 100": "scale_submit_p99", "query, 1 in 100": "scale_query_p99"}
    waits = {name: points(metric) for name, metric in ours.items()} | {"job on all hosts": points("scale_gang")}
    plots["hosts.svg"] = lines(
        "What a caller waits as hosts grow", "hosts", "ms", {name: one for name, one in waits.items() if one}
    )
    wanted = {
        "starts and ends, jobs/s": "scale_starts",
        "CPU of lavad for a job, ms": "scale_cpu_lavad",
        "memory of lavad, MB": "scale_memory_lavad",
        "cores that lavad has": "scale_cores_lavad",
        "cores that its scheduler has": "scale_cores_sched",
        "cores that its query process has": "scale_cores_query",
        "cores that the pretended hosts have": "scale_cores_hosts",
        "cores of the machine at work": "scale_cores_busy",
        "a commit, ms": "scale_commit",
        "a cycle of the scheduler, ms": "scale_cycle",
        "kill -9 of lavad to the first answer, s": "scale_restart",
    }
    wanted = {what: metric for what, metric in wanted.items() if any(f"{metric}{end}" in figures for end in ends)}
    rows = [(what, *(_value(figures, f"{metric}{end}") for end in ends)) for what, metric in wanted.items()]
    rows += [(f"{name}, ms", *(_value(figures, f"{metric}{end}") for end in ends)) for name, metric in ours.items()]
    rows.append(("a job on all hosts, ms", *(_value(figures, f"scale_gang{end}") for end in ends)))
    return f"""## Many hosts

A real lavad with hosts that speak the agents' protocol and only pretend to run: 8 slots each, jobs of 4 seconds, 100 pending jobs
for each host. Two jobs a second for each host are the most that its slots allow. Callers ask at the same time.

{_table(("hosts", *(f"{HOSTS[end]:,}" for end in ends)), rows)}
{_limit(figures)}
{_image("hosts", "milliseconds of submits, queries and a job on all hosts, by number of hosts")}"""


def _limit(figures: Mapping[str, Line]) -> str:
    """Which resource is used up at the largest site; "" if none is, or none was measured."""
    cores = {name: figures[f"scale_cores_{name}"]["value"] for name in (*OF_MASTER, "busy") if f"scale_cores_{name}" in figures}
    if "busy" not in cores:
        return ""
    there = cores.pop("busy")
    name = max(cores, key=cores.__getitem__)
    if cores[name] >= USED_UP:
        return f"At 1,000 hosts the limit is {OF_MASTER[name]}, which is one thread: it has {short(cores[name])} of a core.\n"
    return (
        f"At 1,000 hosts {OF_MASTER[name]} is busiest of lava, with {short(cores[name])} of a core; all that runs, the\n"
        f"pretended hosts and the callers included, has {short(there)} cores.\n"
    )


def _value(figures: Mapping[str, Line], metric: str) -> str:
    return short(figures[metric]["value"]) if metric in figures else ""


def _store(figures: Mapping[str, Line], plots: Plots) -> str:
    callers = (1, 16, 256)
    if not all(f"store_commit_postgresql_{count}" in figures for count in callers):
        return ""
    series = {
        name: [(float(count), figures[f"store_commit_{name}_{count}"]["value"]) for count in callers]
        for name in ("sqlite", "postgresql")
    }
    series["4 KiB, synced"] = [(float(count), figures[f"store_commit_sqlite_{count}"]["floor"]) for count in callers]
    plots["store.svg"] = lines("A durable commit of what so many callers wait for", "callers", "ms", series)
    rows = [
        (
            count,
            *(_value(figures, f"store_commit_{name}_{count}") for name in ("sqlite", "postgresql")),
            _short(figures[f"store_commit_postgresql_{count}"].get("to_sqlite")),
            *(_value(figures, f"store_callers_{name}_{count}") for name in ("sqlite", "postgresql")),
        )
        for count in callers
    ]
    heads = ("callers", "SQLite, ms a commit", "PostgreSQL, ms", "times SQLite's", "SQLite, submits/s", "PostgreSQL, submits/s")
    return f"""## The store

One commit holds what waits, and is on disk before anyone has an answer.

{_table(heads, rows)}

{_image("store", "milliseconds of a commit for 1, 16 and 256 callers on SQLite and PostgreSQL")}"""


def _short(value: float | None) -> str:
    return "" if value is None else short(value)


def _flat(figures: Mapping[str, Line]) -> str:
    found = [one for metric, one in figures.items() if metric.startswith("flat_") and "ratio" in one]
    if not found:
        return ""
    rows = [
        (_flat_name(one), f"{short(one['floor'])} {one['unit']}", f"{short(one['value'])} {one['unit']}", short(one["ratio"]))
        for one in found
    ]
    disk = figures.get("flat_store")
    said = f"A finished job takes {short(disk['value'])} bytes on disk, log of events included." if disk else ""
    many, _, begin = str(found[0]["note"]).partition("; floor: after ")
    return f"""## After many jobs

On one host, {many}, beside after the first {begin}.

{_table(("", "at the start", "at the end", "times"), rows)}

{said}
"""


def _flat_name(one: Line) -> str:
    name = str(one["metric"]).removeprefix("flat_")
    plain = {"speed": "no-op jobs, of which a tenth are separate", "cpu": "CPU of all of lava for one"}
    return plain.get(name, f"memory, {name.removeprefix('memory_')}")


def _all(figures: Sequence[Line]) -> str:
    rows = []
    for one in figures:
        if "contender" not in one:
            floor = f"{short(one['floor'])}" if "floor" in one else ""
            rows.append(
                (f"`{one['metric']}`", f"{short(one['value'])} {one['unit']}", floor, _short(one.get("ratio")), one["note"])
            )
    return f"""## All figures of `make bench`

{_table(("", "", "floor", "times", "what"), rows)}"""


def _again(results: Results) -> str:
    return f"""## To measure it again

    make bench [ONLY=throughput]    # lava beside its floors
    make bench-peers [ONLY=ROW]     # lava beside what is installed of the others
    make bench-check [ALL=1]        # a few of them; says what is 30 % worse than in the last kept results
    make bench-keep [NOTE=…]        # all of this page, about {max(1, round(results.minutes))} minutes
"""


def _table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    body = [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in (heads, *rows)]
    return "\n".join([body[0], f"|{'-|' * len(heads)}", *body[1:], ""])


def _image(name: str, said: str) -> str:
    return f"![{said}]({PLOTS}/{name}.svg)\n"

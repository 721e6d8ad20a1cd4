"""The targets of lava's speed, as numbers, and whether kept figures meet them. Pure.

Each is one number of a figure: its value, its ratio (to a floor, or lava's lead on a peer), or how many times SQLite's it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.line import Line


@dataclass(frozen=True)
class Target:
    """One of them. ``field``: which number of the figure; ``more``: the limit is the least that is good enough, not the most."""

    what: str
    metric: str
    limit: float
    field: str = "value"
    more: bool = False


TARGETS = (
    Target("no-op array, beside HyperQueue", "beside_throughput_array_hyperqueue", 3, "ratio", more=True),
    Target("the same with CHUNK_JOB_SIZE", "beside_throughput_chunks_hyperqueue", 3, "ratio", more=True),
    Target("the same by a program, until its wait returns", "beside_api_array_hyperqueue", 3, "ratio", more=True),
    Target("no-op array, beside what the starter does alone", "throughput_array", 0.9, "ratio", more=True),
    Target("CPU of all of lava for a no-op job", "cpu_per_job_all", 1.1),
    Target("separate no-op jobs, beside HyperQueue", "beside_throughput_single_hyperqueue", 5, "ratio", more=True),
    Target("the same by a program, until its wait returns", "beside_api_single_hyperqueue", 5, "ratio", more=True),
    Target("one bsub, beside sbatch", "beside_submit_command_slurm", 1, "ratio", more=True),
    Target("one bsub, beside a bare start of Python", "submit_command", 0.6, "ratio"),
    Target("four loops of bsub, beside sbatch", "beside_submit_rate_4_slurm", 1, "ratio", more=True),
    Target("an array of 10,000, beside sbatch", "beside_array_submit_10000_slurm", 1, "ratio", more=True),
    Target("10,000 different jobs by one call, on disk", "submit_bulk_10000", 20_000, more=True),
    Target("submit to end of one job, idle", "turnaround", 6),
    Target("1,000 sleeps started on one host", "start_1000", 1),
    Target("a list of 10,000 pending jobs", "query_all_10000", 20),
    Target("a list of 100,000 pending jobs", "query_all_100000", 150),
    Target("memory of lavad for a pending job", "rss_per_job_10000", 500),
    Target("the same with its scheduler and query process", "rss_per_job_all_10000", 1000),
    Target("restart with 10,000 pending jobs, to the first answer", "restart_10000", 0.7),
    Target("64 ranks, beside mpiexec.hydra", "beside_ranks_64_hydra", 1, "ratio", more=True),
    Target("first cycle over 100,000 classes", "mark_classes_first", 1000),
    Target("starts and ends a second on 1,000 hosts", "scale_starts", 1000, more=True),
    Target("a commit for 1 caller, PostgreSQL beside SQLite", "store_commit_postgresql_1", 1.5, "to_sqlite"),
    Target("a commit for 16 callers", "store_commit_postgresql_16", 1.5, "to_sqlite"),
    Target("a commit for 256 callers", "store_commit_postgresql_256", 1.5, "to_sqlite"),
    Target("submits by 256 callers, PostgreSQL beside SQLite", "store_callers_postgresql_256", 1.5, "to_sqlite"),
    Target("speed at the end of many jobs, beside the start", "flat_speed", 0.9, "ratio", more=True),
    Target("CPU of a job at the end of many jobs, beside the start", "flat_cpu", 1.1, "ratio"),
    Target("memory of lavad at the end of many jobs, beside the start", "flat_memory_lavad", 1.2, "ratio"),
)


def number(target: Target, figures: dict[str, Line]) -> float | None:
    """What was measured; None: it was not."""
    found = figures.get(target.metric, {}).get(target.field)
    return None if found is None else float(found)


def unit_of(target: Target, figures: dict[str, Line]) -> str:
    """Of that number."""
    return str(figures[target.metric]["unit"]) if target.field == "value" else "times"


def met(target: Target, value: float) -> bool:
    """Whether a number is good enough."""
    return value >= target.limit if target.more else value <= target.limit

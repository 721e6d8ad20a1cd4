"""bparams: the parameters in force."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.conf import Params
from lavad.queries.request import Request, Shown, out


def show(request: Request) -> Iterator[Shown]:
    """Four lines; -l with explanations; -a as NAME = value."""
    options = request.options("l a")
    params = request.view.params
    if "a" in options:
        yield out("".join(f"        {name} = {value}\n" for name, value, _ in table(params)))
    elif "l" in options:
        for name, value, words in table(params):
            yield out(f"\n{words}:\n    {name} = {value}\n")
    else:
        yield out(
            f"Default Queues:  {' '.join(params.default_queues)}\n"
            "MBD_SLEEP_TIME used for calculations:  10 seconds\n"
            "Job Checking Interval:  7 seconds\n"
            "Job Accepting Interval:  0 seconds\n"
        )


def _yes(value: bool) -> str:
    return "Y" if value else "N"


def table(params: Params) -> list[tuple[str, str, str]]:
    """Name, value with its unit, and what it is; parameters that are not set are left out."""
    rows: list[tuple[str, object, str]] = [
        ("DEFAULT_QUEUE", " ".join(params.default_queues), "System default queue for automatic queue selection"),
        ("DEFAULT_PROJECT", params.default_project, "Project name of jobs that give none"),
        ("CLEAN_PERIOD", f"{params.clean_period} (seconds)", "How long finished jobs are shown by bjobs"),
        ("MAX_JOBID", params.max_jobid, "The highest job id"),
        ("MAX_JOB_ARRAY_SIZE", params.max_array, "The highest index of a job array"),
        ("MAX_PEND_JOBS", params.max_pend_jobs, "The most pending slots in the cluster"),
        ("MAX_USER_PRIORITY", params.max_user_priority, "The highest user priority"),
        ("JOB_TERMINATE_INTERVAL", f"{params.terminate_interval} (seconds)", "Between the signals that end a job"),
        ("ABS_RUNLIMIT", _yes(params.abs_runlimit), "Run limits are wall clock time, not scaled by CPU factors"),
        ("PARALLEL_SCHED_BY_SLOT", _yes(params.parallel_by_slot), "Parallel jobs are placed by slots, not by CPUs"),
        ("RESOURCE_RESERVE_PER_TASK", _yes(params.rusage_per_task), "rusage counts per task, not per host"),
        ("LSF_UNIT_FOR_LIMITS", params.unit_name, "The unit of limits"),
        ("LSB_RESOURCE_ENFORCE", " ".join(params.enforce) or None, "What is enforced by control groups"),
        ("RUNLIMIT_WARNING", f"{params.run_warning} (seconds)", "Between the signal at the run limit and the kill"),
        ("HOST_TIMEOUT", f"{params.host_timeout:g} (seconds)", "A host that is silent for this long is unavail"),
        ("LEASE", f"{params.lease:g} (seconds)", "How long a rerunnable job runs on without a word from the master"),
        ("LEASE_MARGIN", f"{params.margin:g} (seconds)", "What passes after the lease before it starts elsewhere"),
    ]
    return [(name, str(value), words) for name, value, words in rows if value is not None]

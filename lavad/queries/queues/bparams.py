"""bparams: the parameters in force, and what else the site's lsb.params sets."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.view import View


def show(request: Request) -> Iterator[Shown]:
    """Four lines; -l with explanations; -a as NAME = value."""
    options = request.options()
    view = request.view
    if "a" in options:
        yield out("".join(f"        {name} = {value}\n" for name, value, _ in table(view)))
    elif "l" in options:
        yield out("\n")
        for name, value, words in table(view):
            yield out(f"{words}:\n    {name} = {value}\n\n" if words else f"    {name} = {value}\n\n")
    else:
        yield from _short(view)


def _short(view: View) -> Iterator[Shown]:
    params, site = view.params, dict(view.cluster.conf.site_params)
    yield out(f"Default Queues:  {' '.join(params.default_queue)}\n")
    if "DEFAULT_HOST_SPEC" in site:
        yield out(f"Default Host Specification:  {site['DEFAULT_HOST_SPEC']}\n")
    yield out(f"MBD_SLEEP_TIME used for calculations:  {params.mbd_sleep_time} seconds\n")
    yield out(f"Job Checking Interval:  {params.sbd_sleep_time} seconds\n")
    yield out(f"Job Accepting Interval:  {params.job_accept_interval * params.mbd_sleep_time} seconds\n")


def _yes(value: bool) -> str:
    return "Y" if value else "N"


def _seconds(value: object) -> str:
    return f"{value} (seconds)"


def table(view: View) -> list[tuple[str, str, str]]:
    """Name, value with its unit, and what it is: those in force, then the rest of lsb.params as it stands."""
    params, site = view.params, dict(view.cluster.conf.site_params)
    most = params.max_user_priority
    growth = params.job_priority_over_time
    rows: list[tuple[str, object, str]] = [
        ("DEFAULT_QUEUE", " ".join(params.default_queue), "System default queues for automatic queue selection"),
        ("DEFAULT_HOST_SPEC", site.get("DEFAULT_HOST_SPEC"), "System default host or host model for adjusting CPU time limit"),
        ("MBD_SLEEP_TIME", _seconds(params.mbd_sleep_time), "Amount of time in seconds used for calculating parameter values"),
        ("SBD_SLEEP_TIME", _seconds(params.sbd_sleep_time), "The interval for checking jobs by slave batch daemon"),
        (
            "JOB_ACCEPT_INTERVAL",
            f"{params.job_accept_interval} (* MBD_SLEEP_TIME)",
            "The interval for a host to accept two batch jobs",
        ),
        ("PG_SUSP_IT", _seconds(site.get("PG_SUSP_IT", 180)), "The idle time of a host for resuming pg suspended jobs"),
        ("CLEAN_PERIOD", _seconds(params.clean_period), "The amount of time during which finished jobs are kept in core"),
        (
            "MAX_JOB_NUM",
            params.max_job_num or None,
            "The maximum number of finished jobs that can be stored in current events file",
        ),
        ("MAX_SBD_FAIL", site.get("MAX_SBD_FAIL", 3), "The maximum number of retries for reaching a slave batch daemon"),
        ("DEFAULT_PROJECT", params.default_project, "The default project assigned to jobs"),
        ("JOB_TERMINATE_INTERVAL", _seconds(params.job_terminate_interval), "The interval to terminate a job"),
        ("MAX_JOB_ARRAY_SIZE", params.max_job_array_size, "The maximum number of jobs in a job array"),
        ("JOB_SPOOL_DIR", site.get("JOB_SPOOL_DIR"), "The batch jobs' temporary output directory"),
        (
            "MAX_USER_PRIORITY",
            None if most is None else f"{most}\nThe default job priority is: {most // 2}",
            "Maximal job priority defined for all users",
        ),
        (
            "JOB_PRIORITY_OVER_TIME",
            growth and f"{growth[0]}/{growth[1] // 60} (minutes)",
            "Job priority is increased by the system dynamically based on waiting time",
        ),
        ("JOB_DEP_LAST_SUB", 1 if params.job_dep_last_sub else None, "Used with job dependency scheduling"),
        ("MAX_JOBID", params.max_jobid, "The Maximum JobId defined in the system"),
        ("DEFAULT_APPLICATION", params.default_application or None, "The default application profile of jobs"),
        ("MAX_PEND_JOBS", params.max_pend_jobs, "The maximum number of pending jobs of a user"),
        ("MAX_PEND_SLOTS", params.max_pend_slots, "The maximum number of pending job slots of a user"),
        ("ABS_RUNLIMIT", _yes(params.abs_runlimit), "Run limits are wall clock time, not scaled by CPU factors"),
        ("PARALLEL_SCHED_BY_SLOT", _yes(params.parallel_sched_by_slot), "Parallel jobs are placed by slots, not by CPUs"),
        ("RESOURCE_RESERVE_PER_TASK", _yes(params.resource_reserve_per_task), "rusage counts per task, not per host"),
        ("LSF_UNIT_FOR_LIMITS", params.lsf_unit_for_limits, "The unit of limits"),
        ("LSB_RESOURCE_ENFORCE", " ".join(params.lsb_resource_enforce) or None, "What is enforced by control groups"),
        ("LAVA_HOST_TIMEOUT", _seconds(params.lava_host_timeout), "A host that is silent for this long is unavailable"),
        ("LAVA_LEASE", _seconds(params.lava_lease), "How long a rerunnable job runs on without a word from the master"),
        (
            "LAVA_LEASE_MARGIN",
            _seconds(params.lava_lease_margin),
            "What passes after the lease before it starts elsewhere",
        ),
    ]
    shown = {name for name, _, _ in rows}
    rows += [(name, value, "") for name, value in site.items() if name not in shown]
    return [(name, str(value), words) for name, value, words in rows if value is not None]

"""bqueues -l: one queue at length."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.conf import QueueConf
from lavad.core.spec import Limits
from lavad.queries import bqueues_shares, thresholds, units
from lavad.queries.queuefacts import QueueRow, limit

_HEADER = "PRIO NICE     STATUS       MAX JL/U JL/P JL/H NJOBS  PEND  RUN  SSUSP USUSP  RSV\n"


def record(row: QueueRow, deep: bool = False) -> str:
    """The whole record; ``deep``: with the share trees of groups within groups."""
    conf = row.conf
    line = (
        f"{conf.priority:>4}{conf.nice:>4} {row.long_status:^16}{limit(conf.max_slots):>5}{limit(conf.user_limit):>4}"
        f"{limit(conf.processor_limit):>5}{limit(conf.host_limit):>5}{row.njobs:>6}{row.pend:>6}{row.run:>6}"
        f"{row.ssusp:>6}{row.ususp:>6}{row.rsv:>5}\n"
    )
    table = thresholds.table(row.view.cluster.conf, conf.thresholds)
    return "".join([
        f"\nQUEUE: {conf.name}\n  -- {conf.description}\n\nPARAMETERS/STATISTICS\n{_HEADER}{line}",
        *_intervals(conf), *_limits("DEFAULT LIMITS:", conf.defaults), *_limits("MAXIMUM LIMITS:", conf.limits),
        f"\nSCHEDULING PARAMETERS\n{table}",
        *_policies(conf), *bqueues_shares.section(row, deep), "\n", *_members(conf), *_actions(conf), "\n",
    ])  # fmt: skip


def _intervals(conf: QueueConf) -> Iterator[str]:
    if conf.job_accept_interval is not None:
        yield f"\nInterval for a host to accept two jobs is {conf.job_accept_interval} seconds\n"
    if conf.new_job_delay:
        yield f"Schedule delay for a new job is {conf.new_job_delay} seconds\n"
    if conf.migrate_after is not None:
        yield f"Migration threshold is {conf.migrate_after // 60} minutes\n"
    if conf.job_max_slots is not None or conf.min_slots > 1 or conf.default_slots > 1:
        most = conf.job_max_slots if conf.job_max_slots is not None else "-"
        yield f"\nTASKLIMIT\n {conf.min_slots} {conf.default_slots} {most}\n"


def _limits(title: str, own: Limits) -> Iterator[str]:
    cells = [
        (name, text)
        for name, text in (
            ("CPULIMIT", own.cpu and f"{own.cpu / 60:.1f} min"), ("RUNLIMIT", own.run and f"{own.run / 60:.1f} min"),
            ("FILELIMIT", own.file and units.limit_text(own.file)),
            ("DATALIMIT", own.data and units.limit_text(own.data)),
            ("STACKLIMIT", own.stack and units.limit_text(own.stack)),
            ("CORELIMIT", units.limit_text(own.core) if own.core is not None else None),
            ("MEMLIMIT", own.mem and units.limit_text(own.mem)), ("SWAPLIMIT", own.swap and units.limit_text(own.swap)),
            ("PROCESSLIMIT", own.processes and str(own.processes)),
        )
        if text
    ]  # fmt: skip
    if cells:
        yield f"\n{title}\n" + "".join(f" {name:<24}\n {text:<24}\n" for name, text in cells)


def _policies(conf: QueueConf) -> Iterator[str]:
    words = bqueues_shares.words(conf)
    if conf.exclusive:
        words.append("EXCLUSIVE")
    if conf.backfill:
        words.append("BACKFILL")
    if conf.interactive != "yes":
        words.append("NO_INTERACTIVE" if conf.interactive == "no" else "ONLY_INTERACTIVE")
    if conf.preemption:
        words.append(conf.preemption)
    if words:
        yield f"\nSCHEDULING POLICIES:  {'  '.join(words)}\n"
    if conf.run_window:
        yield f"\nRUN_WINDOWS:  {conf.run_window}\n"
    if conf.dispatch_window:
        yield f"\nDISPATCH_WINDOW:  {conf.dispatch_window}\n"


def _members(conf: QueueConf) -> Iterator[str]:
    users, hosts = " ".join(conf.users), " ".join(conf.hosts)
    yield f"USERS:  {'all users' if users == 'all' else users}\n"
    yield f"HOSTS:  {'all hosts used by the batch system' if hosts == 'all' else hosts}\n"
    if conf.admins:
        yield f"ADMINISTRATORS:  {' '.join(conf.admins)}\n"


def _actions(conf: QueueConf) -> Iterator[str]:
    for title, value in (
        ("PRE_EXEC", conf.pre_exec), ("POST_EXEC", conf.post_exec), ("JOB_STARTER", conf.job_starter),
        ("REQUEUE_EXIT_VALUES", conf.requeue_exit_values), ("RES_REQ", conf.resreq), ("GPU_REQ", conf.gpu),
        ("STOP_COND", conf.stop_cond), ("RESUME_COND", conf.resume_cond), ("CHKPNTDIR", conf.checkpoint),
        ("RERUNNABLE", "yes" if conf.rerunnable else ""), ("JOB_CONTROLS", conf.job_controls),
        ("TERMINATE_WHEN", conf.terminate_when), ("SLOT_RESERVE", str(conf.slot_reserve) if conf.slot_reserve else ""),
    ):  # fmt: skip
        if value:
            yield f"{title}:  {value}\n"

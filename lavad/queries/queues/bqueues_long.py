"""bqueues -l: one queue at length, in LSF's paragraphs; -r: with the share trees of groups within groups."""

from __future__ import annotations

from collections.abc import Iterator

from config.model.queue import QueueConfig
from config.model.values import Aps, Interactive, JobAction
from config.values.parameters import QUEUE_PARAMETERS
from lavad.queries.facts import load, paragraphs, queuefacts, shares
from lavad.queries.facts.queuefacts import QueueRow
from lavad.queries.frame import formats
from lavad.sched.order.fairshare import queue_policies

_HEADER = "PRIO NICE     STATUS       MAX JL/U JL/P JL/H NJOBS  PEND  RUN  SSUSP USUSP  RSV\n"


def record(row: QueueRow, deep: bool = False) -> str:
    """The whole record; ``deep``: with the share trees of groups within groups."""
    conf = row.conf
    lead = formats.joined(f"{conf.priority:>4} {conf.nice:>3} {_centred(row.long_status)}", _number(conf.qjob_limit, 5))
    limits = f"{_number(conf.ujob_limit, 4)} {_number(conf.pjob_limit, 4, 1)} {_number(conf.hjob_limit, 4)}"
    counts = f"{row.pend:>5} {row.run:>5} {row.ssusp:>5} {row.ususp:>5} {row.rsv:>4}"
    line = f"{formats.joined(f'{lead} {limits}', f'{row.njobs:>5}')} {counts}\n"
    table = load.threshold_table(row.view.cluster.conf, conf.thresholds)
    return "".join(
        [
            f"QUEUE: {conf.name}\n  -- {conf.description}{_default(row)}\n\nPARAMETERS/STATISTICS\n{_HEADER}{line}\n",
            *_intervals(row),
            *_limits(row),
            f"\nSCHEDULING PARAMETERS\n{table}",
            queuefacts.exception_table(row.view, conf.name, row.now),
            queuefacts.owned_lines(row.view, conf.name),
            *_policies(conf),
            *_share_section(row, deep),
            *_windows(conf),
            "\n",
            *_members(row),
            *_actions(conf),
            *_comment(row),
            *_controls(conf),
            "\n",
        ]
    )


def _centred(status: str) -> str:
    """In sixteen columns, what is left over before it."""
    return (" " * ((17 - len(status)) // 2) + status).ljust(16)


def _number(value: float | None, width: int, digits: int = 0) -> str:
    """A limit in a column; the dash of one that is not set stands a place further left."""
    return f"{'-':>{width - 1}} " if value is None else f"{value:>{width}.{digits}f}"


def _default(row: QueueRow) -> str:
    defaults = row.view.params.default_queue
    if row.conf.name not in defaults:
        return ""
    return "  This is the default queue." if len(defaults) == 1 else "  This is one of the default queues."


def _intervals(row: QueueRow) -> Iterator[str]:
    conf, params = row.conf, row.view.params
    if conf.mig is not None:
        yield f"Migration threshold is {conf.mig // 60} minutes\n"
    if conf.new_job_sched_delay:
        yield f"Schedule delay for a new job is {conf.new_job_sched_delay} seconds\n"
    turns = params.job_accept_interval if conf.job_accept_interval is None else conf.job_accept_interval
    yield f"Interval for a host to accept two jobs is {turns * params.mbd_sleep_time} seconds\n"


def _limits(row: QueueRow) -> Iterator[str]:
    """Times are those of a host or model, the master's if none is named."""
    conf = row.conf
    host = conf.default_host_spec or row.view.params.default_host_spec or row.view.master
    yield from paragraphs.limits_of_profile(conf, host)
    for parameter in QUEUE_PARAMETERS:
        if parameter.is_limit and getattr(conf, parameter.field) is not None:
            yield f"\n {parameter.name}\n {getattr(conf, parameter.field)}\n"


def _policies(conf: QueueConfig) -> Iterator[str]:
    words = _share_policies(conf)
    if conf.backfill:
        words.append("BACKFILL")
    if conf.interruptible_backfill:
        words.append("INTERRUPTIBLE_BACKFILL")
    if conf.ignore_deadline:
        words.append("IGNORE_DEADLINE")
    if conf.exclusive:
        words.append("EXCLUSIVE")
    if conf.interactive is not Interactive.YES:
        words.append("NO_INTERACTIVE" if conf.interactive is Interactive.NO else "ONLY_INTERACTIVE")
    words += ["PREEMPTIVE"] * conf.preemption.preemptive + ["PREEMPTABLE"] * conf.preemption.preemptable
    if words:
        yield f"\nSCHEDULING POLICIES:  {'  '.join(words)}\n"


def _windows(conf: QueueConfig) -> Iterator[str]:
    if conf.default_host_spec:
        yield f"\nDEFAULT HOST SPECIFICATION:  {conf.default_host_spec}\n"
    if conf.run_window:
        yield f"\nRUN_WINDOWS:  {conf.run_window}\n"
    if conf.dispatch_window:
        yield f"\nDISPATCH_WINDOW:  {conf.dispatch_window}\n"


def _members(row: QueueRow) -> Iterator[str]:
    conf, cluster = row.conf, row.view.cluster.conf
    users = _named(conf.users, {name for name, _ in cluster.user_groups})
    hosts = _named(conf.hosts, {name for name, _ in cluster.host_groups})
    yield f"USERS:  {'all users' if users == 'all' else users}\n"
    yield f"HOSTS:  {'all hosts used by the batch system' if hosts == 'all' else hosts}\n"
    if conf.administrators:
        yield f"ADMINISTRATORS:  {' '.join(conf.administrators)}\n"


def _named(words: tuple[str, ...], groups: set[str]) -> str:
    """The words, a slash after the name of a group."""
    return " ".join(f"{word}/" if word in groups else word for word in words)


def _actions(conf: QueueConfig) -> Iterator[str]:
    for parameter in QUEUE_PARAMETERS:
        for line in parameter.lines:
            text = line.text(getattr(conf, parameter.field))
            if text:
                yield f"{line.title}:  {text}\n"


def _comment(row: QueueRow) -> Iterator[str]:
    """What an administrator said who opened, closed, activated or inactivated it last (``badmin qclose -C``)."""
    comment = row.view.cluster.queue_state(row.conf.name).comment
    if comment:
        yield f"ADMIN ACTION COMMENT: {comment}\n"


def _controls(conf: QueueConfig) -> Iterator[str]:
    if conf.job_controls:
        yield "\nJOB_CONTROLS:\n"
        for action in JobAction:
            if conf.control(action):
                yield f"    {action + ':':<14}[{conf.control(action)}]\n"
    if conf.terminate_when:
        yield f"\nTERMINATE_WHEN = {' '.join(conf.terminate_when)}\n"


def _share_policies(conf: QueueConfig) -> list[str]:
    """Names for SCHEDULING POLICIES."""
    found = []
    if conf.aps_priority is not None:
        found.append("APS_PRIORITY")
    if conf.share is not None and conf.share.round_robin:
        found.append("ROUND_ROBIN_POLICY")
    elif conf.share is not None and not conf.share.of_group_alone:
        found.append("FAIRSHARE")
    return found


def _share_section(row: QueueRow, deep: bool) -> Iterator[str]:
    """What follows the policies; nothing for a queue without any."""
    conf = row.conf
    if conf.aps_priority is not None:
        yield _aps(conf.aps_priority)
    policy = queue_policies(row.view.cluster.conf).get(conf.name)
    if policy is None or ("FAIRSHARE" not in _share_policies(conf) and "ROUND_ROBIN_POLICY" not in _share_policies(conf)):
        if policy is not None and policy.name != conf.name:
            yield f"FAIRSHARE:  by queue {policy.name}\n"
        return
    share = policy.share
    if len(policy.queues) > 1:
        title = "QUEUE_GROUP" if conf.aps_priority is not None else "FAIRSHARE_QUEUES"
        yield f"{title}:  {' '.join(policy.queues)}\n"
    if share.by_queue:
        yield "DISPATCH_ORDER:  QUEUE\n"
    if share.dominant_resources:
        yield f"DOMINANT_RESOURCES:  {' '.join(share.dominant_resources)}\n"
    yield f"USER_SHARES:  {shares.text(policy.shares)}\n"
    yield from shares.tables(row.view, policy, row.now, conf.name, deep)


def _aps(aps: Aps) -> str:
    lines = ["APS_PRIORITY:\n"]
    weights, limits, graces = dict(aps.weights), dict(aps.limits), dict(aps.graces)
    lines.append(f"{'FACTOR':<14}{'WEIGHT':>10}{'LIMIT':>10}{'GRACE_PERIOD':>14}\n")
    for name in dict.fromkeys((*weights, *limits, *graces)):
        grace = f"{graces[name]:g}s" if name in graces else "-"
        cells = (f"{weights[name]:g}" if name in weights else "-", f"{limits[name]:g}" if name in limits else "-")
        lines.append(formats.joined(f"{name:<14}", f"{cells[0]:>10}", f"{cells[1]:>10}", f"{grace:>14}") + "\n")
    return "".join(lines)

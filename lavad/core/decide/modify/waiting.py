"""bmod of pending jobs: nearly everything may change."""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.base.groups import missing_groups
from lavad.core.decide.base.resolve import resolve
from lavad.core.decide.base.specs import spec_number
from lavad.core.decide.modify.change import Change, describe, reset
from lavad.core.decide.submit.checkpoint_method import settle_method
from lavad.core.decide.submit.defaults import (
    apply_app,
    apply_app_limits,
    apply_app_requirement,
    apply_host_spec,
    apply_queue,
    apply_working_folder,
    leave_app,
    leave_queue_reruns,
    settle_resizable,
)
from lavad.core.decide.submit.execution import check_interactive, settle_interactive
from lavad.core.decide.submit.gpus import GPU_OPTIONS, adopt_gpus, settle_gpus
from lavad.core.decide.submit.memory import settle_learnt_memory, settle_memory
from lavad.core.decide.submit.queue_rules import check_against_queue, check_exclusive, choose_queue, leave_queue
from lavad.core.decide.submit.relations import check_service_class
from lavad.core.decide.submit.roles import check_simple
from lavad.core.decide.submit.submit import check_reservation, check_times
from lavad.core.decide.submit.work import check_work
from lavad.core.job.depend import Depend, Ended
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import index_of, job_of
from lavad.core.lang.job_names import ArrayError, name_of_command, parse_job_name
from lavad.core.rules.checkpoint_folder import for_other_hosts
from proto.numbers import find_number
from proto.options import find_reset


class _Settled(NamedTuple):
    """What the request makes of a job, and of all that are like it. ``spec``: the number of its new spec."""

    draft: JobDraft
    spec: int
    changes: tuple[str, ...]
    depends: bool
    depend: Depend | None
    ended: tuple[tuple[int, Ended], ...]


def modify_waiting(change: Change, record: Job | Array) -> JobText:
    """Decide the event for a pending job or an array; returns its new text. Raises Refused."""
    settled = change.once(_settled, record, isinstance(record, Job) and record.checkpoint >= 0, id(record.depend))
    name, limit = _name(change, record, settled.draft)
    change.decided.events.append(
        ev.JobModified(
            at=change.now,
            key=record.key if isinstance(record, Job) else record.job,
            spec=settled.spec,
            name=name,
            by=change.caller.user,
            changes=settled.changes,
            limit=limit,
            depends=settled.depends,
            depend=settled.depend,
            ended=settled.ended,
        )
    )
    return settled.draft.text


def _settled(change: Change, record: Job | Array) -> _Settled:
    """Of a job or an array: what it does not read of a record is left to ``modify_waiting``. Raises Refused."""
    cluster, options, caller, now = change.cluster, change.ask.options, change.caller, change.now
    draft = change.begin_draft(record)
    _check_roles(change, draft)
    adopt_gpus(draft)
    if options.keys() & {"app", "appn"}:
        leave_app(draft)
    if options.keys() & {"app", "appn", "q", "qn"}:
        leave_queue_reruns(draft, cluster.queue_conf.get(draft.spec.queue))
    _read(change, draft)
    if options.keys() & {"r", "k"}:
        check_interactive(draft)
    _apply_app(draft, options.keys())
    if "cwdn" in options:
        apply_working_folder(draft)
    _apply_queue(change, draft)
    if options.keys() & {"b", "t"}:
        check_times(draft.spec)
    if options.keys() & {"U", "m"}:
        check_reservation(cluster, draft)
    if options.keys() & {"sla", "q", "P", "app", "G"}:
        check_service_class(draft)
    events = change.decided.events
    number = spec_number(cluster, draft.spec, events, now)
    if "g" in options:
        events += missing_groups(cluster, draft.spec.group, caller.user, now)
    depends = bool({"w", "wn", "ti", "tin"} & options.keys())
    depend, ended = _condition(change, record, draft) if depends else (None, ())
    return _Settled(draft, number, _describe_all(change), depends, depend, ended)


def _check_roles(change: Change, draft: JobDraft) -> None:
    if not draft.spec.roles:
        return
    if rival := next((name for name in ("n", "nn", "a", "an") if name in change.ask.options), ""):
        raise Refused(f"-{rival} cannot be changed for a job with roles")
    if change.ask.command:
        raise Refused("The commands of a job with roles cannot be changed")


def _read(change: Change, draft: JobDraft) -> None:
    """Resets, the new command, and then the options."""
    for name in change.ask.options:
        option = find_reset(name)
        if option is not None:
            reset(draft, option)
    if change.ask.command:
        if not change.ask.command.strip() and not change.ask.script:
            raise Refused("No command is specified")
        check_work(change.cluster.conf.params, change.ask.command, change.ask.script)
        draft.set_text(command=change.ask.command, script=change.ask.script)
    change.read_options(draft)
    if draft.spec.roles:
        check_simple(draft)


def _apply_app(draft: JobDraft, asked: Set[str]) -> None:
    """What its application profile gives to the job and asks of it, as bsub does. Raises Refused."""
    if asked & {"app", "appn"}:
        apply_app(draft)
        return
    if asked & {"a", "ar"}:
        settle_resizable(draft)
    if asked & {"R", "Rn"}:
        apply_app_requirement(draft)
    apply_app_limits(draft)


def _apply_queue(change: Change, draft: JobDraft) -> None:
    """The requested queue, else the current one, must accept the changed job; raises Refused."""
    queue = change.cluster.queue_conf.get(draft.spec.queue)
    if draft.queues or "qn" in change.ask.options:
        queue = choose_queue(change.cluster, draft.queues, draft, change.caller)
    if queue is None:
        return
    if change.ask.options.keys() & {"x", "xn", "R"}:
        check_exclusive(draft, queue)
    leave_queue(change.cluster, draft, queue.name)
    apply_queue(draft, queue)
    settle_interactive(draft, draft.name)
    if change.ask.options.keys() & {"M", "q", "qn"}:
        settle_memory(change.cluster, draft)
    if "M" in change.ask.options:
        settle_learnt_memory(change.cluster, draft)
    if change.ask.options.keys() & GPU_OPTIONS:
        settle_gpus(draft, queue)
    settle_method(change.cluster, draft)
    if change.ask.options.keys() & {"m", "mn", "q", "qn"}:
        draft.spec = for_other_hosts(draft.spec)
    check_against_queue(draft, queue)
    apply_host_spec(draft, queue)


def _describe_all(change: Change) -> tuple[str, ...]:
    changes = tuple(describe(name, value) for name, value in change.ask.options.items())
    return (*changes, f"Job command changes to : {change.ask.command}") if change.ask.command else changes


def _name(change: Change, record: Job | Array, draft: JobDraft) -> tuple[str, int]:
    """(new name, new limit of the array); limit -1: unchanged."""
    if "Jn" in change.ask.options or ("J" in change.ask.options and not draft.name):
        return _new_name(change.cluster, record, name_of_command(draft.text.command).split("[")[0] or "job")
    return _new_name(change.cluster, record, draft.name) if "J" in change.ask.options else (record.name, -1)


def _condition(change: Change, record: Job | Array, draft: JobDraft) -> tuple[Depend | None, tuple[tuple[int, Ended], ...]]:
    """The condition that ``-w``, ``-wn``, ``-ti`` and ``-tin`` leave."""
    cluster, options, old = change.cluster, change.ask.options, record.depend
    if "wn" in options or (old is None and not draft.condition):
        return None, ()
    orphan = draft.orphan or (old is not None and old.orphan and "tin" not in options)
    if not draft.condition and old is not None:
        return replace(old, orphan=orphan), ()
    indices = record.indices if isinstance(record, Array) else None
    if isinstance(record, Job) and record.key >> 32:
        indices = cluster.arrays.rows[job_of(record.key)].indices
    found = resolve(cluster, draft.condition, change.caller, orphan, change.known, indices)
    if isinstance(record, Job) and not index_of(record.key) and any(record.key in ids for ids in found.depend.ids):
        raise Refused(f"{draft.condition}: A job cannot wait for itself")
    return found.depend, found.ended


def _new_name(cluster: Cluster, record: Job | Array, text: str) -> tuple[str, int]:
    """``bmod -J``: (new name, new limit of the array, -1: unchanged); indices cannot change. Raises Refused."""
    array = cluster.arrays.rows.get(record.job) if isinstance(record, Array) else cluster.find_array(record.key)
    if array is not None and text.startswith("%") and (limit := find_number(text[1:], 1)):
        return record.name, limit
    try:
        parsed = parse_job_name(text, cluster.conf.params.max_job_array_size)
    except ArrayError as error:
        raise Refused(str(error)) from None
    if isinstance(parsed, str):
        name, limit = parsed, -1
    elif array is None or parsed.indices != array.indices:
        raise Refused("Bad job name")
    else:
        name, limit = parsed.name, parsed.limit or 0
    return (f"{name}[{index_of(record.key)}]" if isinstance(record, Job) and array is not None else name), limit

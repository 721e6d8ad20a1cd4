"""bmod and bswitch of jobs that wait."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any

from msgspec.structs import replace

from config.model.values import Limits
from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.bulk import DENIED, each
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides
from lavad.core.decide.base.draft import Draft
from lavad.core.decide.base.groups import missing_groups
from lavad.core.decide.base.named import NOTHING, Known, resolve
from lavad.core.decide.base.select import FINISHED, UNKNOWN, Target, find_target
from lavad.core.decide.modify import running as modify_running
from lavad.core.decide.submit.defaults import apply_queue
from lavad.core.decide.submit.options import read_options
from lavad.core.decide.submit.queue_rules import check_against_queue, check_exclusive, choose_queue
from lavad.core.decide.submit.roles import check_simple
from lavad.core.decide.submit.submit import check_reservation, known_names, known_resources, spec_number
from lavad.core.events.records import record_of
from lavad.core.job.depend import Depend, Ended
from lavad.core.job.job import Array, Job
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.arrays import ArrayError, name_of_command, parse_job_id, parse_job_name
from lavad.core.lang.asks import Caller, Modify, Refused, Switch
from lavad.core.lang.ids import index_of, job_of, key_of
from lavad.core.lang.ranges import Ranges
from lavad.core.lang.states import WAITING
from lavad.core.site.rights import may_control

_ANY_TIME = datetime(1970, 1, 1)  # noqa: DTZ001 - nothing that a switch checks has a time
MOST_ELEMENTS = 10_000
_RESET_SPEC: dict[str, dict[str, Any]] = {
    "n": {"slots": 1, "max_slots": 1}, "R": {"resreq": ""}, "m": {"hosts": ()}, "sp": {"priority": -1},
    "gpu": {"gpu": None}, "k": {"checkpoint": None}, "b": {"begin": 0.0}, "t": {"deadline": 0.0},
    "G": {"user_group": ""}, "x": {"exclusive": False}, "r": {"rerunnable": False, "never_rerun": True}, "a": {"launch": ""},
    "g": {"group": ""}, "app": {"app": ""}, "Q": {"requeue": ""},
    "ar": {"autoresize": False, "resizable": False}, "rnc": {"resize_command": ""}, "nnodes": {"slots": 1, "max_slots": 1},
    "U": {"reservation": ""}, "We": {"estimate": 0},
    "mig": {"migrate_after": -1}, "hostfile": {"resreq": "", "slots": 1, "max_slots": 1},
}  # fmt: skip
_RESET_LIMIT = {
    "W": "run", "c": "cpu", "M": "mem", "v": "swap", "F": "file", "D": "data", "S": "stack", "C": "core",
    "p": "processes", "T": "threads",
}  # fmt: skip
_RESET_TEXT: dict[str, dict[str, Any]] = {
    "o": {"output": ""}, "e": {"error": ""}, "i": {"input": "", "input_data": ""}, "E": {"pre_exec": ""}, "Ep": {"post_exec": ""},
    "Jd": {"description": ""}, "u": {"mail_user": ""}, "B": {"notify_start": False}, "N": {"notify_end": False},
    "cwd": {"cwd_given": False}, "L": {"login_shell": ""}, "outdir": {"output_dir": ""}, "w": {}, "ti": {},
    "a": {"software": (), "esub": ""},
    "secret": {"secrets": ()},
    "oo": {"output": ""}, "eo": {"error": ""}, "wa": {"warn_action": ""}, "wt": {"warn_before": 0}, "q": {}, "P": {},
    "is": {"input": "", "input_data": ""}, "f": {"copies": ()}, "ptl": {"pend_limit": 0}, "eptl": {"eligible_limit": 0},
    "notify": {"notify": ""}, "Ne": {"notify": ""}, "Nd": {"notify": ""}, "Ns": {"notify": ""},
    "hostfile": {"host_file": ""}, "hl": {}, "J": {}, "label": {"label": False}, "rankfiles": {"rank_files": ""},
}  # fmt: skip
_WORDS = {
    "n": "Processors", "R": "Resource requirement", "m": "Hosts", "sp": "Job priority", "q": "Job queue", "J": "Job name",
    "W": "Run limit", "c": "CPU limit", "M": "Memory limit", "o": "Output file", "e": "Error file", "i": "Input file",
    "w": "Dependency condition",
    "P": "Project", "b": "Start time", "t": "Termination time", "E": "Pre-execution command", "gpu": "GPU requirement",
    "g": "Job group", "G": "User group", "Jd": "Job description", "k": "Checkpoint directory", "L": "Login shell",
    "u": "Mail user", "p": "Process limit", "S": "Stack limit", "D": "Data limit", "F": "File limit", "C": "Core limit",
    "v": "Swap limit", "T": "Thread limit", "app": "Application profile", "Ep": "Post-execution command",
    "cwd": "Working directory", "Q": "Requeue exit values", "is": "Input file", "oo": "Output file", "eo": "Error file",
}  # fmt: skip


def find_one(cluster: Cluster, text: str, caller: Caller) -> Target:
    """The live target of a command that takes one job; raises Refused with LSF's words."""
    try:
        job, elements = parse_job_id(text)
    except ArrayError as error:
        raise Refused(str(error)) from None
    target = find_target(cluster, job, elements, text)
    if target.why:
        raise Refused(target.why if target.why == FINISHED else f"{text}: {UNKNOWN}")
    record = cluster.arrays.rows[target.array] if target.array else cluster.jobs.rows[target.keys[0]]
    spec = cluster.specs.rows[record.spec]
    if not may_control(cluster.conf, spec.user, spec.queue, caller):
        raise Refused(DENIED)
    return target


def modify(
    cluster: Cluster, ask: Modify, text: JobText, caller: Caller, now: float, local: datetime, known: Known = NOTHING
) -> Decided:
    """bmod of a waiting job, or of all waiting elements of an array."""
    target = find_one(cluster, ask.job, caller)
    decided = Decided(answer={"job": ask.job})
    records = _records(cluster, target, "[" in ask.job)
    if len(records) > MOST_ELEMENTS:
        raise Refused(f"{ask.job}: At most {MOST_ELEMENTS} elements can be modified at a time")
    started = [record for record in records if isinstance(record, Job) and record.state not in WAITING]
    why = modify_running.why_not(cluster, ask) if started else ""
    if why and len(started) == len(records):
        raise Refused(why)
    for record in records:
        if record not in started:
            new_text = _modify_one(cluster, record, ask, text, caller, now, local, decided, known)
            if "[" in ask.job and new_text != text:
                raise Refused("The command, files and mail of an element are its array's: modify the whole array")
        elif not why:
            new_text = modify_running.modify(cluster, record, ask, text, caller, now, local, decided)
    decided.texts.append((int(ask.job.partition("[")[0]), new_text))
    return decided


def _records(cluster: Cluster, target: Target, elements: bool) -> list[Job | Array]:
    """What is to be modified; untouched elements that are named one by one as the jobs that they would be."""
    found: list[Job | Array] = [cluster.jobs.rows[key] for key in target.keys]
    if target.array and not elements:
        found.insert(0, cluster.arrays.rows[target.array])
    elif target.array:
        indices = islice(target.untouched, MOST_ELEMENTS + 1)
        found += [record_of(cluster, key_of(target.array, index)) for index in indices]
    return found


def _modify_one(
    cluster: Cluster, record: Job | Array, ask: Modify, text: JobText, caller: Caller, now: float, local: datetime,
    decided: Decided, known: Known,
) -> JobText:  # fmt: skip
    old = cluster.specs.rows[record.spec]
    options = dict(ask.options)
    draft = Draft(
        spec=old, text=text, conf=cluster.conf, local=local, name=record.name,
        known_hosts=known_names(cluster), known_resources=known_resources(cluster),
    )  # fmt: skip
    if old.roles and (rival := next((name for name in ("n", "nn", "a", "an") if name in options), "")):
        raise Refused(f"-{rival} cannot be changed for a job with roles")
    if old.roles and ask.command:
        raise Refused("The commands of a job with roles cannot be changed")
    _reset(draft, options)
    if ask.command:
        draft.set_text(command=ask.command, script=ask.script)
    read_options(draft, {name: value for name, value in options.items() if not _is_reset(name)})
    if old.roles:
        check_simple(draft)
    queue = cluster.queue_conf.get(old.queue)
    if draft.queues or "qn" in options:
        queue = choose_queue(cluster, draft.queues, draft, caller)
    if queue is not None:
        if "x" in options:
            check_exclusive(draft, queue)
        apply_queue(draft, queue)
        check_against_queue(draft, queue)
    if "U" in options:
        check_reservation(cluster, draft)
    number = spec_number(cluster, draft.spec, decided.events, now)
    if "g" in options:
        decided.events += missing_groups(cluster, draft.spec.group, caller.user, now)
    key = record.key if isinstance(record, Job) else record.job
    changes = tuple(_change(name, value) for name, value in options.items())
    if ask.command:
        changes = (*changes, f"Job command changes to : {ask.command}")
    name, limit = _new_name(cluster, record, draft.name) if "J" in options else (record.name, -1)
    if "Jn" in options:
        name, limit = _new_name(cluster, record, name_of_command(draft.text.command).split("[")[0] or "job")
    depends = {"w", "wn", "ti", "tin"} & options.keys()
    depend, ended = _condition(cluster, record, draft, options, caller, known) if depends else (None, ())
    decided.events.append(
        ev.JobModified(
            at=now, key=key, spec=number, name=name, by=caller.user, changes=changes, limit=limit,
            depends=bool(depends), depend=depend, ended=ended,
        )
    )  # fmt: skip
    return draft.text


def _condition(
    cluster: Cluster, record: Job | Array, draft: Draft, options: dict[str, Any], caller: Caller, known: Known
) -> tuple[Depend | None, tuple[tuple[int, Ended], ...]]:
    """The condition that ``-w``, ``-wn``, ``-ti`` and ``-tin`` leave."""
    old = record.depend
    if "wn" in options or (old is None and not draft.condition):
        return None, ()
    orphan = draft.orphan or (old is not None and old.orphan and "tin" not in options)
    if not draft.condition and old is not None:
        return replace(old, orphan=orphan), ()
    indices = record.indices if isinstance(record, Array) else None
    if isinstance(record, Job) and record.key >> 32:
        indices = cluster.arrays.rows[job_of(record.key)].indices
    depend, ended = resolve(cluster, draft.condition, caller, orphan, known, indices)
    if isinstance(record, Job) and not index_of(record.key) and any(record.key in ids for ids in depend.ids):
        raise Refused(f"{draft.condition}: A job cannot wait for itself")
    return depend, ended


def _new_name(cluster: Cluster, record: Job | Array, text: str) -> tuple[str, int]:
    """``bmod -J``: the name that the record gets, and the array's limit (-1: as it is); indices cannot change."""
    array = cluster.arrays.rows.get(record.job) if isinstance(record, Array) else cluster.find_array(record.key)
    if array is not None and text.startswith("%") and text[1:].isascii() and text[1:].isdigit() and int(text[1:]):
        return record.name, int(text[1:])
    try:
        parsed = parse_job_name(text, cluster.conf.params.max_array)
    except ArrayError as error:
        raise Refused(str(error)) from None
    if isinstance(parsed, str):
        name, limit = parsed, -1
    elif array is None or parsed.indices != array.indices:
        raise Refused("Bad job name")
    else:
        name, limit = parsed.name, parsed.limit or 0
    return (f"{name}[{index_of(record.key)}]" if isinstance(record, Job) and array is not None else name), limit


def _is_reset(option: str) -> bool:
    return len(option) > 1 and option.endswith("n") and option[:-1] in {*_RESET_SPEC, *_RESET_LIMIT, *_RESET_TEXT}


def _reset(draft: Draft, options: dict[str, Any]) -> None:
    for option in options:
        if not _is_reset(option):
            continue
        name = option[:-1]
        if name == "P":
            draft.set_spec(project=draft.conf.params.default_project)
        if name in _RESET_SPEC:
            draft.set_spec(**_RESET_SPEC[name])
        if name in _RESET_TEXT:
            draft.set_text(**_RESET_TEXT[name])
        if name in _RESET_LIMIT:
            draft.set_limit(**{_RESET_LIMIT[name]: getattr(Limits(), _RESET_LIMIT[name])})


def _change(option: str, value: Any) -> str:
    if _is_reset(option):
        return f"{_WORDS.get(option[:-1], f'Option -{option[:-1]}')} is reset"
    if value is True:
        return f"Option -{option} is set"
    shown = " ".join(value) if isinstance(value, list) else value
    return f"{_WORDS.get(option, f'Option -{option}')} changes to : {shown}"


@decides(Switch)
def switch(cluster: Cluster, ask: Switch, caller: Caller, now: float) -> Decided:
    """bswitch of waiting and started jobs to another queue."""
    if ask.queue not in cluster.queue_conf:
        raise Refused(f"{ask.queue}: No such queue")
    events: list[ev.Event] = []
    known: dict[int, Spec | str] = {}

    def switched(record: Job | Array, key: int, now: float) -> list[ev.Event] | str:
        if ask.queue not in cluster.queue_conf:
            return f"{ask.queue}: No such queue"
        spec = known.get(record.spec)
        if spec is None:
            spec = known[record.spec] = _in_queue(cluster, cluster.specs.rows[record.spec], ask.queue, caller)
        if isinstance(spec, str):
            return spec
        number = spec_number(cluster, spec, events, now)
        return [ev.JobSwitched(at=now, key=key, spec=number, queue=ask.queue, by=caller.user)]

    def on_job(job: Job, now: float) -> list[ev.Event] | str:
        return switched(job, job.key, now)

    def on_elements(array: Array, elements: Ranges, now: float) -> list[ev.Event] | str:
        if len(elements) == len(array.pending) + len(array.held):
            return switched(array, array.job, now)
        done: list[ev.Event] = []
        for index in elements:
            answer = switched(array, index << 32 | array.job, now)
            if isinstance(answer, str):
                return answer
            done += answer
        return done

    return each(cluster, ask.jobs, caller, now, on_job, on_elements, before=events)


def _in_queue(cluster: Cluster, old: Spec, name: str, caller: Caller) -> Spec | str:
    """The spec of a job once it is in another queue, or why it may not go there."""
    draft = Draft(spec=old, text=JobText(command=""), conf=cluster.conf, local=_ANY_TIME, known_hosts=known_names(cluster))
    try:
        choose_queue(cluster, (name,), draft, caller)
        draft.spec = replace(old, queue=name)
        check_against_queue(draft, cluster.queue_conf[name])
    except Refused as refusal:
        return refusal.text
    return draft.spec

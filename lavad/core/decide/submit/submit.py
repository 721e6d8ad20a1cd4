"""bsub: a wish to run a command becomes a job or an array, or is refused with LSF's words and nothing is left of it."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.draft import Draft
from lavad.core.decide.base.groups import missing_groups
from lavad.core.decide.base.named import NOTHING, Known, Resolved, resolve
from lavad.core.decide.reserve.reservations import check_job
from lavad.core.decide.submit import interactive, restart
from lavad.core.decide.submit.options import read_options, with_defaults
from lavad.core.decide.submit.restart import Former
from lavad.core.decide.submit.roles import read_roles
from lavad.core.decide.submit.site_defaults import apply_host_spec, apply_site
from lavad.core.decide.submit.tasks import check_tasks
from lavad.core.job.resize import why_not_resizable
from lavad.core.job.spec import Checkpoint, JobText, Limits, Spec
from lavad.core.lang import gpureq
from lavad.core.lang.arrays import ArrayError, ArraySpec, name_of_command, parse_job_name
from lavad.core.lang.asks import Caller, Refused, Submit
from lavad.core.lang.resreq import text as resreq
from lavad.core.site.conf import AppConf, QueueConf
from lavad.core.site.host_names import members, preferences
from lavad.core.site.rights import is_admin, may_use_queue
from lavad.core.site.share_rights import has_share

MAX_COMMAND = 2**20
KEYWORDS = frozenset(("all", "others", "allremote"))
_LIMIT_NAMES = {
    "run": "RUNLIMIT",
    "cpu": "CPULIMIT",
    "mem": "MEMLIMIT",
    "swap": "SWAPLIMIT",
    "file": "FILELIMIT",
    "data": "DATALIMIT",
    "stack": "STACKLIMIT",
    "core": "CORELIMIT",
    "processes": "PROCESSLIMIT",
    "threads": "THREADLIMIT",
}


def submit(
    cluster: Cluster,
    ask: Submit,
    caller: Caller,
    now: float,
    local: datetime,
    known: Known = NOTHING,
    former: Former | None = None,
) -> Decided:
    """Check a submission and make it a job; raises Refused. ``known``: finished jobs that its condition names; ``former``:
    the job that is restarted.
    """
    _check_caller(cluster, ask, caller)
    draft = read_draft(cluster, ask, caller, local, former)
    interactive.check(draft)
    apply_app(draft)
    apply_site(draft)
    queue = choose_queue(cluster, draft.queues, draft, caller)
    apply_queue(cluster, draft, queue)
    check_against_queue(draft, queue)
    _check_models(draft.spec)
    apply_host_spec(draft, queue)
    check_reservation(cluster, draft)
    _notice_times(draft, now)
    name = _parse_name(cluster, draft.name) if draft.name else name_of_command(draft.text.command)
    interactive.settle(draft, name)
    _check_pending_limits(cluster, draft, name)
    depends: Resolved | None = None
    if draft.condition:
        indices = name.indices if isinstance(name, ArraySpec) else None
        depends = resolve(cluster, draft.condition, caller, draft.orphan, known, indices)
    return _submitted(cluster, draft, name, queue, now, bool(draft.queues), caller, depends)


def _check_caller(cluster: Cluster, ask: Submit, caller: Caller) -> None:
    if (caller.uid == 0 or caller.user == "root") and not cluster.conf.params.root_jobs:
        raise Refused("User permission denied")
    if not ask.command.strip() and not ask.script and not ask.restart_of:
        raise Refused("No command is specified")
    if len(ask.command) > MAX_COMMAND or "\0" in ask.command:
        raise Refused("The command is too long" if "\0" not in ask.command else "Bad command")


def known_names(cluster: Cluster) -> frozenset[str]:
    """Hosts and host groups that ``-m`` may name."""
    groups = (name for name, _ in cluster.conf.host_groups)
    return frozenset((*cluster.hosts.rows, *cluster.host_conf, *groups, *KEYWORDS))


def known_resources(cluster: Cluster) -> frozenset[str]:
    """Resource names that a requirement may use beside the built-in ones."""
    return resreq.BUILT_IN | {resource.name for resource in cluster.conf.resources}


def read_draft(cluster: Cluster, ask: Submit, caller: Caller, local: datetime, former: Former | None = None) -> Draft:
    """The options of a submission, read."""
    conf = cluster.conf
    spec = Spec(user=caller.user, queue="", project=conf.params.default_project, from_host=caller.host)
    text = JobText(
        command=ask.command,
        script=ask.script,
        env=ask.env_hash,
        cwd=ask.cwd,
        home=ask.home,
        umask=ask.umask & 0o777,
        shell=ask.shell,
    )
    draft = Draft(
        spec=spec,
        text=text,
        conf=conf,
        local=local,
        known_hosts=known_names(cluster),
        known_resources=known_resources(cluster),
    )
    if former is not None:
        restart.begin(draft, ask, former, caller.host)
    read_options(draft, ask.options)
    if former is not None:
        restart.settle(draft, ask, former)
    read_roles(draft, ask)
    return draft


def apply_app(draft: Draft) -> None:
    """What the application profile gives a job that does not say otherwise; raises Refused where it asks for too much."""
    why = why_not_resizable(draft.spec.launch) if draft.spec.resizable else ""
    if draft.spec.resizable and draft.spec.roles:
        why = "a job with several roles cannot be resized"
    if why:
        raise Refused(why)
    name = draft.spec.app or draft.conf.params.default_app
    app = next((app for app in draft.conf.apps if app.name == name), None)
    if app is None:
        return
    spec = draft.spec
    _check_most(draft, app.limits)
    if app.job_max_slots is not None and spec.slots > app.job_max_slots:
        raise Refused("Too many processors requested")
    gpu = spec.gpu
    if gpu is not None or app.gpu:
        gpu = gpureq.merge(gpu or gpureq.parse("-"), gpureq.parse(app.gpu) if app.gpu else None)
    checkpoint = spec.checkpoint
    if checkpoint is None and app.checkpoint:
        folder, _, period = app.checkpoint.partition(" ")
        checkpoint = Checkpoint(
            folder=folder, period=int(period or 0) * 60, method=app.checkpoint_method or "app", initial=app.checkpoint_initial
        )
    slots, most = spec.slots, spec.max_slots
    if slots == 1 and most == 1 and app.default_slots > 1 and not spec.roles:
        slots = most = app.default_slots
    may_resize = not why_not_resizable(spec.launch) and not spec.roles
    draft.spec = replace(
        spec,
        app=app.name,
        gpu=gpu,
        checkpoint=checkpoint,
        slots=slots,
        max_slots=most,
        requeue=spec.requeue or app.requeue,
        estimate=spec.estimate or app.estimate,
        limits=with_defaults(with_defaults(spec.limits, app.defaults), app.limits),
        resreq=_with_app(app, spec.resreq),
        rerunnable=(spec.rerunnable or bool(app.rerunnable)) and not spec.never_rerun,
        resizable=spec.resizable or (bool(app.resizable) and may_resize),
        autoresize=spec.autoresize or (app.resizable == "auto" and may_resize),
        resize_command=spec.resize_command or app.resize_command,
    )
    draft.text = replace(
        draft.text, pre_exec=draft.text.pre_exec or app.pre_exec, post_exec=draft.text.post_exec or app.post_exec
    )


def _with_app(app: AppConf, own: str) -> str:
    if not app.resreq or not own:
        return app.resreq or own
    return resreq.combine(resreq.parse(app.resreq), resreq.parse(own)).text


def _check_most(draft: Draft, most: Limits) -> None:
    for field, title in _LIMIT_NAMES.items():
        limit, wanted = getattr(most, field), getattr(draft.spec.limits, field)
        if limit is not None and wanted is not None and wanted > limit:
            raise Refused(f"{title}: Cannot exceed the application profile's limit")


def choose_queue(cluster: Cluster, names: tuple[str, ...], draft: Draft, caller: Caller) -> QueueConf:
    """The first of the named (else default) queues that takes the job; unknown ones are skipped where another is given."""
    asked = names or cluster.conf.params.default_queues
    refusal = Refused("No such queue")
    for name in asked:
        queue = cluster.queue_conf.get(name)
        try:
            if queue is None:
                raise Refused(f"{name}: No such queue")
            _check_queue(cluster, queue, draft, caller)
        except Refused as why:
            refusal = why
            continue
        return queue
    raise refusal


def check_exclusive(draft: Draft, queue: QueueConf) -> None:
    """Whether the queue lets a job have hosts for itself; raises Refused."""
    if draft.spec.exclusive and not queue.exclusive:
        raise Refused(f"{queue.name}: Queue does not accept EXCLUSIVE jobs")


def _check_queue(cluster: Cluster, queue: QueueConf, draft: Draft, caller: Caller) -> None:
    if not cluster.queue_state(queue.name).open:
        raise Refused(f"{queue.name}: Queue has been closed")
    if not may_use_queue(cluster.conf, queue, caller.user) and not is_admin(cluster.conf, caller):
        raise Refused(f"{queue.name}: User cannot use the queue")
    if not has_share(cluster.conf, queue.name, caller.user):
        raise Refused(f"{queue.name}: User cannot use the queue: {caller.user} has no share of it")
    check_exclusive(draft, queue)
    if "excl" in draft.spec.resreq and not draft.spec.exclusive and resreq.is_exclusive(resreq.parse(draft.spec.resreq)):
        raise Refused("Bad resource requirement: cu[excl] is for exclusive jobs (-x)")
    if draft.spec.interactive and queue.interactive == "no":
        raise Refused("Queue does not accept interactive jobs")
    if not draft.spec.interactive and queue.interactive == "only":
        raise Refused("Queue only accepts interactive jobs")


def apply_queue(cluster: Cluster, draft: Draft, queue: QueueConf) -> None:
    """What the queue gives a job that does not say otherwise."""
    spec = draft.spec
    checkpoint = spec.checkpoint
    if checkpoint is None and queue.checkpoint:
        folder, _, period = queue.checkpoint.partition(" ")
        checkpoint = Checkpoint(folder=folder, period=int(period or 0) * 60, method="app")
    gpu = spec.gpu
    if gpu is not None or queue.gpu:
        gpu = gpureq.merge(gpu or gpureq.parse("-"), gpureq.parse(queue.gpu) if queue.gpu else None)
    params = cluster.conf.params
    priority = spec.priority
    if priority < 0 and params.max_user_priority:
        priority = params.max_user_priority // 2
    slots, most = spec.slots, spec.max_slots
    if slots == 1 and most == 1 and queue.default_slots > 1 and not spec.roles:
        slots = most = queue.default_slots
    draft.spec = replace(
        spec,
        queue=queue.name,
        checkpoint=checkpoint,
        gpu=gpu,
        priority=priority,
        slots=slots,
        max_slots=most,
        limits=with_defaults(spec.limits, queue.defaults),
        rerunnable=(spec.rerunnable or queue.rerunnable) and not spec.never_rerun,
    )


def check_against_queue(draft: Draft, queue: QueueConf) -> None:
    """The queue's own limits on what a job may ask for."""
    limits = draft.spec.limits
    for field, title in _LIMIT_NAMES.items():
        most, wanted = getattr(queue.limits, field), getattr(limits, field)
        if most is not None and wanted is not None and wanted > most:
            raise Refused(f"{title}: Cannot exceed queue's hard limit(s)")
        if most is not None and wanted is None:
            draft.limit(**{field: most})
    if queue.job_max_slots is not None and draft.spec.slots > queue.job_max_slots:
        raise Refused("Too many processors requested")
    if draft.spec.max_slots < queue.min_slots:
        raise Refused("Too few processors requested")
    for most in (queue.max_slots, queue.user_limit):
        if most is not None and draft.spec.slots > most:
            raise Refused("Queue does not have enough per-user job slots")
    check_tasks(draft.spec, queue.resreq)
    if draft.spec.hosts and queue.hosts != ("all",):
        _check_queue_hosts(draft, queue)


def _check_queue_hosts(draft: Draft, queue: QueueConf) -> None:
    """Of each host or group of ``-m`` the queue must have a host."""
    groups = dict(draft.conf.host_groups)
    known = draft.known_hosts - groups.keys() - KEYWORDS
    allowed = preferences(draft.conf, queue.hosts, known)
    for word in draft.spec.hosts:
        name = word.rstrip("!").partition("+")[0]
        if not word.startswith("~") and name not in KEYWORDS and not allowed.keys() & members(draft.conf, name):
            raise Refused(f"{name}: Host or host group is not used by the queue")


def _check_models(spec: Spec) -> None:
    """Two limits cannot be scaled by two hosts or models."""
    if spec.cpu_host and spec.run_host and spec.cpu_host != spec.run_host:
        raise Refused(f"More than one host_spec is specified: <{spec.cpu_host}> and <{spec.run_host}>")


def check_reservation(cluster: Cluster, draft: Draft) -> None:
    """The advance reservation that the job is to run in, if any, takes it; raises Refused."""
    name = draft.spec.reservation
    if name:
        words = draft.spec.hosts
        names = preferences(cluster.conf, words, cluster.hosts.rows) if words and "others" not in " ".join(words) else {}
        check_job(cluster, name, draft.spec.user, names)


def _notice_times(draft: Draft, now: float) -> None:
    spec = draft.spec
    if spec.begin and spec.deadline and spec.deadline <= spec.begin:
        raise Refused("Start time is later than termination time")
    for at, verb in ((spec.begin, "scheduled after"), (spec.deadline, "terminated by")):
        if at:
            shown = datetime.fromtimestamp(at, tz=draft.local.tzinfo).strftime("%a %b %e %H:%M:%S %Y")
            draft.notices = [*draft.notices, f"Job will be {verb} {shown}"]


def _parse_name(cluster: Cluster, text: str) -> ArraySpec | str:
    try:
        return parse_job_name(text, cluster.conf.params.max_array)
    except ArrayError as error:
        raise Refused(str(error)) from None


def _check_pending_limits(cluster: Cluster, draft: Draft, name: ArraySpec | str) -> None:
    count = len(name.indices) if isinstance(name, ArraySpec) else 1
    used = cluster.use.users[draft.spec.user]
    sections = {user.name: user.max_pend for user in cluster.conf.users}
    own = sections.get(draft.spec.user, sections.get("default"))
    for most in (cluster.conf.params.max_pend_jobs, own):
        if most is not None and used[0] + used[1] + count * draft.spec.slots > most:
            raise Refused("Pending job threshold reached")


def _submitted(
    cluster: Cluster,
    draft: Draft,
    name: ArraySpec | str,
    queue: QueueConf,
    now: float,
    named: bool,
    caller: Caller,
    depends: Resolved | None,
) -> Decided:
    job = next_job_id(cluster)
    events: list[ev.Event] = []
    spec = spec_number(cluster, draft.spec, events, now)
    events += missing_groups(cluster, draft.spec.group, caller.user, now)
    array = name if isinstance(name, ArraySpec) else None
    text = replace(draft.text, array_spec="" if array is None else draft.name, on_hold=draft.held)
    events.append(
        ev.JobSubmitted(
            at=now,
            key=job,
            spec=spec,
            held=draft.held,
            by=caller.user,
            name=array.name if array is not None else str(name),
            indices=array.indices if array is not None else None,
            limit=(array.limit or 0) if array is not None else 0,
            spec_text=draft.name if array is not None else "",
            restart=draft.restart,
            depend=depends[0] if depends is not None else None,
            ended=depends[1] if depends is not None else (),
        )
    )
    answer = {"job": job, "queue": queue.name, "default": not named, "notices": draft.notices}
    return Decided(events=events, answer=answer, texts=[(job, text)])


def next_job_id(cluster: Cluster) -> int:
    """The next free job id; ids wrap at MAX_JOBID, and skip jobs that still live."""
    most = cluster.conf.params.max_jobid
    job = cluster.next_job if cluster.next_job <= most else 1
    for _ in range(most):
        if job not in cluster.jobs.rows and job not in cluster.arrays.rows and job not in cluster.conditions.named:
            return job
        job = job + 1 if job < most else 1
    raise Refused("No job id is free: MAX_JOBID is too small for the jobs in the system")


def spec_number(cluster: Cluster, spec: Spec, events: list[ev.Event], now: float) -> int:
    """The number of an equal live spec, or a new one (then an event adds it)."""
    known = cluster.spec_numbers.get(spec)
    if known is not None:
        return known
    for event in events:
        if isinstance(event, ev.SpecAdded) and event.value == spec:
            return event.spec
    number = cluster.next_spec + sum(isinstance(event, ev.SpecAdded) for event in events)
    events.append(ev.SpecAdded(at=now, spec=number, value=spec))
    return number

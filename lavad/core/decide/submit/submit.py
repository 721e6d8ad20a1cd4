"""bsub: makes a job or an array of a submission, or refuses it with LSF's text."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime
from typing import NamedTuple

from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.records import CHARS, READ_CHARS
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.draft import JobDraft
from lavad.core.decide.base.groups import missing_groups
from lavad.core.decide.base.resolve import NOTHING, Resolved, StoredJobs, resolve
from lavad.core.decide.base.room import check_room, full, units_of_new
from lavad.core.decide.base.specs import spec_number
from lavad.core.decide.reserve.reservations import check_job
from lavad.core.decide.submit import restart
from lavad.core.decide.submit.alike import Alike, Common, Run, key_of, own_draft, split_options
from lavad.core.decide.submit.array_policy import check_array
from lavad.core.decide.submit.checkpoint_method import settle_method
from lavad.core.decide.submit.defaults import apply_app, apply_host_spec, apply_queue, apply_site
from lavad.core.decide.submit.execution import check_interactive, settle_interactive
from lavad.core.decide.submit.gpus import settle_gpus
from lavad.core.decide.submit.memory import settle_learnt_memory, settle_memory
from lavad.core.decide.submit.options import read_options, read_own
from lavad.core.decide.submit.queue_rules import KEYWORDS, check_against_queue, choose_queue
from lavad.core.decide.submit.relations import check_service_class
from lavad.core.decide.submit.restart import RestartSource
from lavad.core.decide.submit.roles import read_roles
from lavad.core.decide.submit.work import check_work
from lavad.core.job.depend import MET
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.asks import Caller, OptionValue, Refused, Submit
from lavad.core.lang.job_names import ArrayError, ArraySpec, name_of_command, parse_job_name
from lavad.core.lang.resreq import text as resreq
from lavad.core.rules.checkpoint_folder import Seen, hosts_for, hosts_up, is_found_shared, why_alone
from lavad.core.rules.pending import Waiting, is_over, pending_limits
from proto.answers import Answer


class Given(NamedTuple):
    """A submission, and what is known of it when it is decided."""

    ask: Submit
    caller: Caller
    now: float
    local: datetime
    known: StoredJobs = NOTHING
    """Finished jobs that its condition names."""
    source: RestartSource | None = None
    """The job that is restarted."""
    alike: Alike | None = None
    """Submissions before it, of the same time and state of the site."""
    seen: Seen | None = None
    """Which hosts see the same folders."""


def submit(cluster: Cluster, given: Given) -> Decided:
    """Check a submission and make it a job; raises Refused."""
    run = Run()
    answer = submit_in(run, cluster, given)
    return Decided(events=run.events, answer=answer, texts=run.texts)


def submit_in(run: Run, cluster: Cluster, given: Given) -> Answer:
    """As ``submit``, behind what the run has, which gets the events and the text; a refusal adds nothing to it."""
    ask, caller, _, _, known, source, alike, _ = given
    _check_caller(cluster, ask, caller)
    common, own = split_options(ask.options)
    key = None if alike is None or source is not None else key_of(ask, caller, common)
    found = alike.get(key) if alike is not None and key is not None else None
    if found is None:
        found = _common_draft(cluster, given, common)
        if alike is not None and key is not None:
            alike[key] = found
    draft, queue, limits = found
    if key is not None:
        draft = own_draft(draft, ask)
    read_own(draft, own)
    settle_learnt_memory(cluster, draft)
    name = _parse_name(cluster, draft.name) if draft.name else name_of_command(draft.text.command)
    check_array(draft.spec.policy, name)
    settle_interactive(draft, name)
    slots, more = _check_pending_limits(run, cluster, draft, name, limits)
    depends: Resolved | None = None
    if draft.condition:
        indices = name.indices if isinstance(name, ArraySpec) else None
        depends = resolve(cluster, draft.condition, caller, draft.orphan, known, indices)
    answer = _submitted(run, cluster, draft, name, queue.name, given, depends)
    run.slots += slots
    run.units += more + 1 + len(str(name)) // CHARS
    return answer


def _common_draft(cluster: Cluster, given: Given, options: Mapping[str, OptionValue]) -> Common:
    """What does not depend on the job's name and files, nor on jobs that were submitted just before."""
    ask, caller = given.ask, given.caller
    draft = read_draft(cluster, ask, options, caller, given.local, given.source)
    check_interactive(draft)
    apply_app(draft)
    apply_site(draft)
    queue = choose_queue(cluster, draft.queues, draft, caller)
    apply_queue(draft, queue)
    settle_memory(cluster, draft)
    settle_gpus(draft, queue)
    settle_method(cluster, draft)
    check_against_queue(draft, queue)
    apply_host_spec(draft, queue)
    check_service_class(draft)
    check_reservation(cluster, draft)
    _check_checkpoint_folder(cluster, draft, ask, given.seen or {})
    _notice_times(draft)
    return draft, queue, pending_limits(cluster, draft.spec.user)


def _check_caller(cluster: Cluster, ask: Submit, caller: Caller) -> None:
    if (caller.uid == 0 or caller.user == "root") and not cluster.conf.params.lsf_root_user:
        raise Refused("User permission denied")
    if not ask.command.strip() and not ask.script and not ask.restart_of:
        raise Refused("No command is specified")
    check_work(cluster.conf.params, ask.command, ask.script)


class AnyOf(Container[str]):
    """What is in any of these. A set of all would be made for each submission, of thousands of hosts."""

    def __init__(self, *parts: Container[str]) -> None:
        self._parts = parts

    def __contains__(self, name: object) -> bool:
        return any(name in part for part in self._parts)


def known_names(cluster: Cluster) -> Container[str]:
    """Hosts and host groups that ``-m`` may name."""
    return AnyOf(cluster.hosts.rows, cluster.host_conf, cluster.conf.groups_of_hosts.members, KEYWORDS)


def known_resources(cluster: Cluster) -> frozenset[str]:
    """Resource names that a requirement may use beside the built-in ones."""
    return resreq.BUILT_IN | {resource.name for resource in cluster.conf.resources}


def read_draft(
    cluster: Cluster,
    ask: Submit,
    options: Mapping[str, OptionValue],
    caller: Caller,
    local: datetime,
    source: RestartSource | None = None,
) -> JobDraft:
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
    draft = JobDraft(
        spec=spec,
        text=text,
        conf=conf,
        local=local,
        known_hosts=known_names(cluster),
        known_resources=known_resources(cluster),
    )
    if source is not None:
        restart.begin(draft, ask, source, caller.host)
    read_options(draft, options)
    if source is not None:
        restart.settle(draft, ask, source)
    read_roles(draft, ask)
    if ask.esub:
        draft.set_text(esub=ask.esub)
    return draft


def check_reservation(cluster: Cluster, draft: JobDraft) -> None:
    """The advance reservation that the job is to run in, if any, takes it; raises Refused."""
    name = draft.spec.reservation
    if name:
        words = draft.spec.hosts
        named = bool(words) and "others" not in " ".join(words)
        names = cluster.conf.groups_of_hosts.preferences(words, cluster.hosts.rows) if named else {}
        check_job(cluster, name, draft.spec.user, names)


def _check_checkpoint_folder(cluster: Cluster, draft: JobDraft, ask: Submit, seen: Seen) -> None:
    """Raises Refused where the command has said which folder it is; else the first host looks before the job starts."""
    checkpoint, mount = draft.spec.checkpoint, ask.checkpoint_mount
    if checkpoint is None or checkpoint.to_hosts or not ask.checkpoint_folder:
        return
    folder = checkpoint.stage or checkpoint.folder
    why = why_alone(cluster, draft.spec, (checkpoint.folder, ask.checkpoint_folder), mount, seen)
    if why:
        raise Refused(f"-k: {folder} {why}")
    if is_found_shared(cluster, draft.spec, checkpoint.stage or ask.checkpoint_folder, mount, seen):
        draft.set_spec(checkpoint=replace(checkpoint, seen=True))
    hosts = hosts_for(cluster, draft.spec)
    up = hosts_up(hosts)
    if len(hosts) > 1 and up < 2:
        draft.notices = [
            *draft.notices,
            f"-k: whether other hosts see {folder} is not known, as only {up} of {len(hosts)} hosts is up",
        ]


def check_times(spec: Spec) -> None:
    """Raises Refused for a job that would be ended before it may start."""
    if spec.begin and spec.deadline and spec.deadline <= spec.begin:
        raise Refused("Start time is later than termination time")


def _notice_times(draft: JobDraft) -> None:
    spec = draft.spec
    check_times(spec)
    for at, verb in ((spec.begin, "scheduled after"), (spec.deadline, "terminated by")):
        if at:
            shown = datetime.fromtimestamp(at, tz=draft.local.tzinfo).strftime("%a %b %e %H:%M:%S %Y")
            draft.notices = [*draft.notices, f"Job will be {verb} {shown}"]


def _parse_name(cluster: Cluster, text: str) -> ArraySpec | str:
    try:
        return parse_job_name(text, cluster.conf.params.max_job_array_size)
    except ArrayError as error:
        raise Refused(str(error)) from None


def _check_pending_limits(run: Run, cluster: Cluster, draft: JobDraft, name: ArraySpec | str, limits: Waiting) -> tuple[int, int]:
    """(Slots that are pending with it, units of its class if that is new); raises Refused."""
    user = draft.spec.user
    jobs = len(name.indices) if isinstance(name, ArraySpec) else 1
    slots = jobs * draft.spec.slots
    if is_over(cluster, user, limits, len(run.jobs) + jobs, run.slots + slots):
        raise full(cluster)
    units = 1 + len(draft.name) // CHARS + (len(draft.condition) // READ_CHARS)
    more = units_of_new(cluster, draft.spec) if run.number_of(draft.spec) is None else 0
    check_room(cluster, user, run.units + units + more)
    return slots, more


def _submitted(
    run: Run,
    cluster: Cluster,
    draft: JobDraft,
    name: ArraySpec | str,
    queue: str,
    given: Given,
    depends: Resolved | None,
) -> Answer:
    user, now = given.caller.user, given.now
    job = next_job_id(cluster, run)
    events = run.events
    groups = missing_groups(cluster, draft.spec.group, user, now) if not run.jobs else []
    # from here on nothing is refused
    spec = run.number_of(draft.spec)
    if spec is None:
        spec = spec_number(cluster, draft.spec, events, now)
        run.has(draft.spec, spec)
    events += groups
    array = name if isinstance(name, ArraySpec) else None
    text, array_spec = draft.text, "" if array is None else draft.name
    if text.array_spec != array_spec or text.on_hold != draft.held:
        text = replace(text, array_spec=array_spec, on_hold=draft.held)
    met = depends is not None and depends.stands == MET
    events.append(
        ev.JobSubmitted(
            at=now,
            key=job,
            spec=spec,
            held=draft.held,
            by=user,
            name=array.name if array is not None else str(name),
            indices=array.indices if array is not None else None,
            limit=(array.limit or 0) if array is not None else 0,
            spec_text=draft.name if array is not None else "",
            restart=draft.restart,
            depend=depends.depend if depends is not None else None,
            ended=tuple(depends.single.items()) if depends is not None and not met else (),
            alike=depends.alike if depends is not None and not met else (),
            met=met,
        )
    )
    run.jobs.add(job)
    run.next_job = job + 1
    run.texts.append((job, text))
    return {"job": job, "queue": queue, "default": not draft.queues, "notices": draft.notices}


def next_job_id(cluster: Cluster, run: Run) -> int:
    """The next free job id; ids wrap at MAX_JOBID, and skip jobs that still live."""
    most = cluster.conf.params.max_jobid
    job = run.next_job or cluster.next_job
    job = job if job <= most else 1
    for _ in range(most):
        if not (job in cluster.jobs.rows or job in cluster.arrays.rows or job in cluster.conditions.named or job in run.jobs):
            return job
        job = job + 1 if job < most else 1
    raise Refused("No job id is free: MAX_JOBID is too small for the jobs in the system")

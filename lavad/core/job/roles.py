"""Jobs with several roles: the tasks of an attempt, when each may start, what follows from its end, and when the job ends.

Rule: pure. Ranks number the tasks in order of (role, index); a task keeps its rank through all restarts of the attempt.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence

import msgspec

from lavad.core.job.job import Attempt, End, Part, Placed
from lavad.core.job.spec import Action, Policy, Role, Spec
from lavad.core.job.success import Term, alternatives, is_some
from lavad.core.job.task_run import TaskRun
from lavad.core.lang.states import TASK_OVER, TaskState, TermReason

RESTARTS = ("Never", "OnFailure", "Always", "ExitCode")
EVENTS = ("TaskFailed", "TaskCompleted", "Any")
UNCOUNTED = "RestartJobUncounted"
"""RestartJob, as often as it comes to that: it is none of the job's restarts."""
RESTART_GROUP, UNCOUNTED_GROUP, RESTART_ROLE = "RestartGroup", "RestartGroupUncounted", "RestartRole"
"""The tasks of the group, or of the whole role, are ended and start again in their places, while others run on."""
ABORT_ARRAY = "AbortArray"
"""AbortJob, and the other elements of the array end with it."""
_TOGETHER = (RESTART_GROUP, UNCOUNTED_GROUP, RESTART_ROLE)
ACTIONS = ("RestartJob", UNCOUNTED, "RestartTask", *_TOGETHER, "AbortJob", ABORT_ARRAY, "CompleteJob", "Ignore")
_COUNTED = ("RestartTask", "RestartJob", RESTART_GROUP, RESTART_ROLE)
"""Actions that are among the restarts that the job may have."""
CLEAN = ("running", "all", "none")
LAUNCHER_START = ("when_ready", "at_once")
FRAMEWORKS = ("", "mpi", "mpich", "intelmpi", "pytorch", "tensorflow", "jax", "xgboost", "paddle", "mxnet", "volcano")
MAX_DELAY = 60.0


def tasks_of(spec: Spec, parts: Sequence[Placed]) -> tuple[TaskRun, ...]:
    """The tasks of an attempt with these parts, by rank."""
    after = _orders(spec)
    late = [is_late(role, spec.policy) for role in spec.roles]
    found = [
        TaskRun(role=role, index=first + step, place=place, late=late[role], after=after.get(role, ()))
        for place, part in enumerate(parts)
        for role, first, count in part.roles
        for step in range(count)
    ]
    return tuple(sorted(found, key=lambda task: (task.role, task.index)))


def _orders(spec: Spec) -> dict[int, tuple[int, ...]]:
    """Number of a role to those of the roles that it waits for, where any role names some. Launchers wait for all others then."""
    if not any(role.after for role in spec.roles):
        return {}
    last = [is_launched_last(role, spec.policy) for role in spec.roles]
    found = {}
    for number, role in enumerate(spec.roles):
        before = (other for other, one in enumerate(spec.roles) if one.name in role.after or (last[number] and not last[other]))
        found[number] = tuple(before)
    return found


def is_late(role: Role, policy: Policy) -> bool:
    """Whether the tasks of a role wait until those of other roles run."""
    return bool(role.after) or is_launched_last(role, policy)


def is_launched_last(role: Role, policy: Policy) -> bool:
    """Whether a role is a launcher that waits until all others run."""
    return role.kind not in ("", "hold") and policy.launcher_start == "when_ready"


def gpus_wanted(spec: Spec, part: Placed | Part) -> list[int]:
    """How many GPUs each task of a part has, in the order of its roles."""
    return [spec.roles[role].gpus for role, _, count in part.roles for _ in range(count)]


def task_name(spec: Spec, task: TaskRun) -> str:
    """``worker[1]``."""
    return f"{spec.roles[task.role].name}[{task.index}]"


def find_role(spec: Spec, name: str) -> int:
    """The number of a role, -1: there is none of this name."""
    return next((number for number, role in enumerate(spec.roles) if role.name == name), -1)


def startable(run: Attempt) -> Iterator[tuple[int, TaskRun]]:
    """(rank, task) of tasks that need a start order of their own: late ones, and those that are restarted."""
    waiting: set[int] | None = None
    for rank, task in enumerate(run.tasks):
        if task.state is not TaskState.WAITING or (task.number == 1 and not task.late):
            continue
        if task.late:
            if waiting is None:
                waiting = {one.role for one in run.tasks if one.state is TaskState.WAITING}
                others = any(one.state is TaskState.WAITING and not one.late for one in run.tasks)
            if waiting.intersection(task.after) if task.after else others:
                continue
        yield rank, task


def recalled(run: Attempt) -> Iterator[tuple[int, TaskRun]]:
    """(rank, task) of tasks that run and are to end, as they start again with others."""
    return ((rank, task) for rank, task in enumerate(run.tasks) if task.recalled and task.state is TaskState.RUNNING)


class Count(msgspec.Struct, frozen=True):
    """Numbers of a role's tasks by state."""

    name: str
    wanted: int
    waiting: int
    active: int
    succeeded: int
    failed: int
    restarts: int
    terminated: int
    """Those that have ended since the job was asked to: they are none of the failed ones."""


def counts(spec: Spec, run: Attempt | None) -> list[Count]:
    """One for each role."""
    found = []
    asked = (
        min((pending.at for pending in run.pending_signals if pending.ends), default=math.inf) if run is not None else math.inf
    )
    for number, role in enumerate(spec.roles):
        tasks = [task for task in run.tasks if task.role == number] if run is not None else []
        states = [task.state for task in tasks]
        terminated = sum(task.state is TaskState.FAILED and task.at >= asked for task in tasks)
        found.append(
            Count(
                name=role.name,
                wanted=len(tasks) or role.count,
                waiting=states.count(TaskState.WAITING) if run is not None else role.count,
                active=states.count(TaskState.RUNNING),
                succeeded=states.count(TaskState.SUCCEEDED),
                failed=states.count(TaskState.FAILED) - terminated,
                restarts=sum(task.number - 1 for task in tasks),
                terminated=terminated,
            )
        )
    return found


# -- what follows from an end ---------------------------------------------------------------------------------------------------


class Retry(msgspec.Struct, frozen=True):
    """The task is restarted."""

    delay: float
    why: str


class Recall(msgspec.Struct, frozen=True):
    """Tasks are ended, if they are not over, and start again together."""

    ranks: tuple[int, ...]
    delay: float
    why: str
    counts: bool = True
    """It is one of the job's restarts."""


class Later(msgspec.Struct, frozen=True):
    """What follows is done in so many seconds."""

    action: str
    delay: float
    why: str


class Judgement(msgspec.Struct, frozen=True):
    """The verdict of the whole job, or (``again``) its restart as a whole."""

    end: End
    again: str = ""
    uncounted: bool = False
    """It is none of the job's restarts."""
    array: bool = False
    """The other elements of its array end with it."""


def on_end(
    spec: Spec, run: Attempt, rank: int, limit: TermReason, retries: int, now: float, waited: bool = False
) -> Retry | Recall | Later | Judgement | None:
    """What follows from the end of a task (``run`` includes it already); None: the job continues without the task.

    ``retries``: restarts so far that count for ``backoff``, of the job or of its whole array.
    ``waited``: what was to follow later is due now.
    """
    task = run.tasks[rank]
    role = spec.roles[task.role]
    code = exit_code(task.status)
    what = how_ended(spec, run, rank, limit)
    spent = _is_spent(run, task, role)
    if wants_retry(role.restart, code) and not spent:
        if role.backoff >= 0 or retries < spec.policy.backoff:
            return Retry(delay_of(task.number - 1), what)
        what += f", and its {spec.policy.backoff} restarts are used up"
        return _failed(task, rank, limit, what, now, spec.policy.array_backoff)
    rest = [one.state for one in run.tasks if one.role == task.role]
    found = find_action(spec, role, code, all(state is TaskState.SUCCEEDED for state in rest), spent)
    action, wait = found.action, max(found.delay, delay_of(task.number - 1))
    if spent and wants_retry(role.restart, code):
        of = task_name(spec, task) if role.backoff_each else f"role {role.name}"
        what += f", and the {role.backoff} restarts of {of} are used up"
    if action == "RestartTask" and role.backoff >= 0:
        return Retry(wait, what)
    if found.delay and not waited and action != "RestartTask":
        return Later(action, found.delay, what)
    if action in _COUNTED and retries >= spec.policy.backoff:
        what += f", and the {'array' if spec.policy.array_backoff else 'job'}'s {spec.policy.backoff} restarts are used up"
        return _failed(task, rank, limit, what, now, spec.policy.array_backoff)
    if action == "RestartTask":
        return Retry(wait, what)
    if action in ("RestartJob", UNCOUNTED):
        return Judgement(_end(task, rank, limit, what, now), again=what, uncounted=action == UNCOUNTED)
    if action in _TOGETHER:
        return Recall(_recalled(run, task, role, action), delay_of(task.recalls), what, action != UNCOUNTED_GROUP)
    if action in ("AbortJob", ABORT_ARRAY):
        return _failed(task, rank, limit, what, now, action == ABORT_ARRAY)
    if action == "CompleteJob":
        return Judgement(End(at=now))
    return judged(spec, run, now)


def _is_spent(run: Attempt, task: TaskRun, role: Role) -> bool:
    """Whether the role, the group of the task or the task has restarts of its own, and they are used up."""
    if role.backoff < 0:
        return False
    some = [task] if role.backoff_each else [one for one in run.tasks if in_group(one, task, role)]
    return sum(one.number - one.base for one in some) >= role.backoff


def in_group(one: TaskRun, task: TaskRun, role: Role) -> bool:
    """Whether a task is in the group of another one, whose role this is."""
    return one.role == task.role and (not role.group or one.index // role.group == task.index // role.group)


def _recalled(run: Attempt, task: TaskRun, role: Role, action: str) -> tuple[int, ...]:
    """The ranks of those that start again with a task; one that was not started yet will be with them."""
    whole = action == RESTART_ROLE
    found = (rank for rank, one in enumerate(run.tasks) if (one.role == task.role if whole else in_group(one, task, role)))
    return tuple(rank for rank in found if not _is_unborn(run.tasks[rank]))


def _is_unborn(task: TaskRun) -> bool:
    """Whether a task waits for its first start, which needs an order of its own."""
    return task.late and task.number == 1 and task.state is TaskState.WAITING


def may_return(spec: Spec, run: Attempt, rank: int) -> tuple[int, ...]:
    """The ranks of all tasks of its role that are recalled, of whose group none is left that is to end; () where there is none.

    A role that is recalled as a whole starts again as a whole.
    """
    number = run.tasks[rank].role
    size = spec.roles[number].group
    role = [(rank, task) for rank, task in enumerate(run.tasks) if task.role == number]
    if not size or all(task.recalled or _is_unborn(task) for _, task in role):
        size = len(role)
    left = {task.index // size for _, task in role if task.recalled and task.state not in TASK_OVER}
    return tuple(rank for rank, task in role if task.recalled and task.index // size not in left)


def exit_code(status: int) -> int:
    """The exit code as a shell gives it: 128 plus the signal for a task that was killed."""
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def wants_retry(restart: str, code: int) -> bool:
    """Whether a role's restart policy restarts a task that ended with this code."""
    match restart:
        case "Always":
            return True
        case "OnFailure":
            return code != 0
        case "ExitCode":
            return code >= 128
    return False


def starts_before(spec: Spec, run: Attempt, retries: int) -> int:
    """Restarts by which the next one of the whole job waits; those that do not count are known by the attempts."""
    actions = (spec.policy.actions, *(role.actions for role in spec.roles))
    uncounted = any(one.action in (UNCOUNTED, UNCOUNTED_GROUP) for some in actions for one in some)
    return (max(run.number, retries) if uncounted else retries) - 1


def delay_of(before: int) -> float:
    """Seconds before a restart; ``before``: restarts so far. 0.0 for the first, longer for each further one."""
    return 0.0 if before <= 0 else min(MAX_DELAY, 0.5 * 2.0 ** min(before - 1, 10))


def find_action(spec: Spec, role: Role, code: int, completed: bool, spent: bool = False) -> Action:
    """The action for this end: the role's own, else the job's; without one, a failure ends the job unless its success rule
    allows it.

    ``completed``: all tasks of the role have succeeded; only then the event is TaskCompleted. ``spent``: no task of the role is
    restarted any more, whatever says so; what comes next holds.
    """
    events = ("TaskFailed", "Any") if code else ("TaskCompleted",) if completed else ()
    for actions in (role.actions, spec.policy.actions):
        for one in actions:
            if one.code in (-1, code) and one.event in events and not (spent and one.action == "RestartTask"):
                return one
    ignored = code == 0 or is_some(spec.policy.success) or role.kind == "hold"
    return Action(event="Any", action="Ignore" if ignored else "AbortJob")


def how_ended(spec: Spec, run: Attempt, rank: int, limit: TermReason) -> str:
    """One line for the user on how a task ended."""
    task = run.tasks[rank]
    code = os.waitstatus_to_exitcode(task.status)
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    if limit is not TermReason.NONE:
        how += f" ({limit.name})"
    return f"{task_name(spec, task)} on {run.parts[task.place].host} {how}"


def _failed(task: TaskRun, rank: int, limit: TermReason, what: str, now: float, array: bool) -> Judgement:
    return Judgement(_end(task, rank, limit, what, now), array=array)


def _end(task: TaskRun, rank: int, limit: TermReason, what: str, now: float) -> End:
    status = task.status or 1 << 8
    return End(status=status, at=now, first_rank=rank, first_reason=what, limit=limit)


def judged(spec: Spec, run: Attempt, now: float) -> Judgement | None:
    """Whether the tasks that have ended decide the job by its success rule."""
    open_ended = False
    for terms in alternatives(spec.policy.success):
        holds = True
        for term in terms:
            asked = deciding(spec, run, term)
            well = sum(task.state is TaskState.SUCCEEDED and not task.recalled for task in asked)
            over = all(is_over(task) for task in asked)
            holds = holds and well >= (term.number or len(asked)) and (over or not term.late)
            open_ended = open_ended or not over
        if holds:
            return Judgement(End(at=now))
    if open_ended:
        return None
    rank, task = next((rank, task) for rank, task in enumerate(run.tasks) if task.state is TaskState.FAILED)
    return Judgement(_end(task, rank, TermReason.NONE, how_ended(spec, run, rank, TermReason.NONE), now))


def is_over(task: TaskRun) -> bool:
    """Whether a task has ended, and nothing follows from that any more."""
    return task.state in TASK_OVER and not task.recalled and not task.due


def deciding(spec: Spec, run: Attempt, term: Term) -> list[TaskRun]:
    """The tasks that a term of the success rule is about."""
    if not term.words:
        return [task for task in run.tasks if spec.roles[task.role].kind != "hold"]
    named = [(find_role(spec, word.role), word) for word in term.words]
    return [
        task for task in run.tasks if any(task.role == role and word.first <= task.index <= word.last for role, word in named)
    ]

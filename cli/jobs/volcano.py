"""Volcano's Job: tasks with policies, minAvailable, plugins.

Rule: tasks that know nothing of each other, of which some may start before there is room for all, are elements of an array:
those of one job that find no room when it starts would never run.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace

from cli.client.context import Fail
from cli.jobs import pods, ray
from cli.jobs.fields import Fields
from cli.jobs.identity import Hosts, of_pod, plain
from cli.jobs.model import Action, JobFile, Policy, Role, minutes_of
from proto.roles import MAX_TASKS, PLUGINS

_EVENTS = {
    "TaskFailed": "TaskFailed",
    "PodFailed": "TaskFailed",
    "TaskCompleted": "TaskCompleted",
    "AnyEvent": "Any",
    "*": "Any",
}
_ACTIONS = {
    "RestartJob": "RestartJob",
    "RestartTask": "RestartRole",
    "RestartPod": "RestartTask",
    "RestartPartition": "RestartGroup",
    "AbortJob": "AbortJob",
    "TerminateJob": "AbortJob",
    "CompleteJob": "CompleteJob",
}


_RETRIES = 3
"""What maxRetry is by itself, of a job and of a task; 0 means the same."""
_UNLIMITED = 1_000_000


_RESTARTS = ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")
_EVICTED = {"PodEvicted", "AnyEvent", "*"}


def read_volcano(spec: Fields, job: JobFile) -> None:
    """A Job of batch.volcano.sh/v1alpha1."""
    job.policy = Policy(framework="volcano", success="all", backoff=spec.number("maxRetry", _RETRIES) or _RETRIES)
    spec.any("schedulerName")
    queue = spec.text("queue")
    if queue and queue != "default":
        job.options["q"] = queue
    job.priority_class = spec.text("priorityClassName")
    if seconds := _seconds(spec, "runningEstimate"):
        job.options["We"] = minutes_of(seconds)
    job.policy.actions = _policies(spec, job)
    tasks = spec.items("tasks")
    if not any(_of_evicted(one) for where in (spec, *tasks) for one in where.items("policies")):
        job.options["r"] = True  # Volcano creates each pod that is missing
    apart = _are_apart(spec, tasks)
    if apart:
        _number_elements(tasks[0], job)
    else:
        _find_each_other(tasks, job)
    for task in tasks:
        if task.number("replicas", 1):
            _task(task, job)
        else:
            task.skip()
    if not job.roles:
        raise spec.fail("tasks", "there is none" if not tasks else "none has a replica")
    _plugins(spec.part("plugins"), job)
    if apart:
        (role,) = job.roles
        job.options["J"] = f"{job.options.get('J', 'job')}[1-{role.count}]"
        job.enough = max(1, spec.number("minAvailable", role.least))
        role.count, role.least = 1, 0
        _restart_alone(role, job)
        _topology(spec.part("networkTopology"), job)
        return
    _order(tasks, job)
    if any(role.kind == "hold" for role in job.roles):
        for role in job.roles:
            role.kind = role.kind or "launcher"
    _topology(spec.part("networkTopology"), job)
    together = spec.number("minAvailable", sum(role.least or role.count for role in job.roles))
    needed = _success(spec, together, job)
    job.start_together(max(together, needed) if together >= 0 else together, f"{spec.where}.minAvailable")
    job.say_spare()


def _restart_alone(role: Role, job: JobFile) -> None:
    """Elements of an array know nothing of each other: RestartTask is about the one that failed."""
    for one in (role, job.policy):
        if any(action == "RestartRole" for _, action, _ in one.actions):
            job.ignore("policies.RestartTask of all pods (the one that failed starts again)")
        one.actions = [(event, "RestartTask" if action == "RestartRole" else action, code) for event, action, code in one.actions]


def _are_apart(spec: Fields, tasks: list[Fields]) -> bool:
    """Whether its tasks are alike, know nothing of each other (plugin svc), and need not start together, nor end so."""
    if len(tasks) != 1 or "minSuccess" in spec or "partitionPolicy" in tasks[0]:
        return False
    if not set(spec.part("plugins").names()) <= {"env"}:
        return False
    count = tasks[0].number("replicas", 1)
    together = spec.number("minAvailable", tasks[0].number("minAvailable", count))
    actions = {one[:2] for where in (spec, tasks[0]) for one in _policies(where, JobFile())}
    alone = {("TaskFailed", "RestartTask"), ("TaskFailed", "RestartRole"), ("TaskCompleted", "CompleteJob")}
    return 0 <= together < count and actions <= alone


def _find_each_other(tasks: list[Fields], job: JobFile) -> None:
    """The host names of the tasks (``x-worker-0.x``, plugin svc) in commands and variables are addresses."""
    name, namespace = str(job.options.get("J", "job")), str(job.options.get("P", ""))
    hosts = Hosts()
    for task in tasks:
        role = _name_of(task)
        hosts.tasks |= {f"{name}-{role}-{index}": (role, index) for index in range(min(task.number("replicas", 1), MAX_TASKS))}
    hosts.find(name, alone=False)
    for task in tasks:
        job.identities[_name_of(task)] = replace(of_pod(name, namespace, _name_of(task)), hosts=hosts)


def _number_elements(task: Fields, job: JobFile) -> None:
    """Who the tasks are, by the number of their element."""
    index, name, role = "$((LSB_JOBINDEX - 1))", str(job.options.get("J", "job")), _name_of(task)
    one = of_pod(name, str(job.options.get("P", "")), role, f"{plain(name)}-{role}-{index}")
    one.env = {"VC_TASK_INDEX": index, "VK_TASK_INDEX": index}
    one.fields["volcano.sh/task-index"] = index
    job.identities[role] = one


def _success(spec: Fields, together: int, job: JobFile) -> int:
    """When the job is done: with minSuccess once so many of its tasks are, and it fails once that cannot be any more.

    Without, once all have ended, and as many of them well as had to start together. A failure ends nothing by itself.
    Gives how many have to start for it.
    """
    job.policy.actions.append(("TaskFailed", "Ignore", -1))
    most = sum(role.count for role in job.roles)
    held = sum(role.count for role in job.roles if role.kind == "hold")
    if "minSuccess" in spec:
        number = spec.number("minSuccess", 1)
        if not 1 <= number <= most:
            raise spec.fail("minSuccess", f"{number} is not between 1 and {most}, the tasks of the job")
        if number < most:
            job.policy.success = f"any({number})"
        return number
    if max(1, together - held) < most - held:
        job.policy.success = f"least({max(1, together - held)})"
    return 0


_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6}(?:\.\d{1,9})?)s)?(?:(\d{1,9})ms)?")


def _seconds(fields: Fields, name: str) -> int:
    """A time as Go has it (``1h30m``), in seconds, rounded up; 0: there is none."""
    text = fields.text(name)
    match = _DURATION.fullmatch(text)
    if match is None:
        raise fields.fail(name, f"{text[:40]} is no time such as 1h30m")
    hours, minutes, seconds, thousandths = (float(number or 0) for number in match.groups())
    return math.ceil(hours * 3600 + minutes * 60 + seconds + thousandths / 1000)


def _topology(topology: Fields, job: JobFile) -> None:
    """networkTopology: a tier is a type of compute units, by its name or by its number, 1 the finest."""
    name, number = topology.text("highestTierName"), topology.number("highestTierAllowed", 0)
    mode = topology.text("mode", "hard")
    if mode not in ("hard", "soft"):
        raise topology.fail("mode", f"{mode[:40]}: it is hard or soft")
    if "highestTierAllowed" in topology and number < 1:
        raise topology.fail("highestTierAllowed", f"{number}: tiers count from 1")
    if name or number:
        pods.keep_in_units(name or str(number), mode == "hard", job)
    job.ignore(*(f"networkTopology.{one}" for one in topology.others()))


def _name_of(task: Fields) -> str:
    return task.text("name") or "task"


def _task(task: Fields, job: JobFile) -> None:
    role = Role(_name_of(task), count=task.number("replicas", 1))
    role.least = task.number("minAvailable", 0)
    template = task.part("template")
    pods.read_template(template, role, job)
    role.restart = template.part("spec").text("restartPolicy", "Never")
    role.actions = _policies(task, job)
    _retries(task, role, job)
    _partitions(task.part("partitionPolicy"), role, job)
    pods.hold(role, job, only_sshd=True)
    role.after = task.part("dependsOn").words("name")
    if (iteration := task.part("dependsOn").text("iteration", "all")) not in ("all", "any"):
        raise task.fail("dependsOn.iteration", f"{iteration[:40]}: it is all or any")
    job.ignore(*(f"tasks.{name}" for name in task.others()))
    job.roles.append(role)


def _retries(task: Fields, role: Role, job: JobFile) -> None:
    """maxRetry: how often pods of a task are started again in their places until it counts as failed (TaskFailed)."""
    if role.restart not in ("OnFailure", "Always"):
        return  # then nothing is, and what a policy restarts counts for the job's own maxRetry
    limit = task.number("maxRetry", _RETRIES) or _RETRIES
    told = any(event in ("TaskFailed", "Any") for event, _, _ in (*role.actions, *job.policy.actions))
    if "maxRetry" in task or told:
        role.backoff = limit if limit > 0 else _UNLIMITED


def _partitions(policy: Fields, role: Role, job: JobFile) -> None:
    """partitionPolicy: tasks of which so many, by index, are restarted together (RestartPartition)."""
    if not policy.names():
        return
    size, number = policy.number("partitionSize", 0), policy.number("totalPartitions", 0)
    if size < 1 or number < 1 or size * number != role.count:
        raise policy.fail("partitionSize", f"{number} partitions of {size} are not the {role.count} replicas of the task")
    role.group = size
    if policy.number("minPartitions", number) != number:
        job.ignore("partitionPolicy.minPartitions (all of them start together)")
    job.ignore(*(f"partitionPolicy.{name}" for name in policy.others()))


def _order(tasks: list[Fields], job: JobFile) -> None:
    """dependsOn: a task that depends on all others is their launcher; any other starts once those that it names run.

    ``iteration: any`` is no less: all of them are started together.
    """
    names = {role.name for role in job.roles}
    where = {_name_of(task): task for task in tasks}
    for role in job.roles:
        if unknown := next((name for name in role.after if name not in where), ""):
            raise where[role.name].fail("dependsOn.name", f"{unknown[:64]}: there is no such task")
        role.after = [] if role.kind == "hold" else [name for name in role.after if name in names]
    launchers = [role for role in job.roles if role.after and {*role.after, role.name} == names]
    for role in launchers:
        role.kind, role.after = role.kind or "launcher", []


_FRAMEWORKS = {**PLUGINS, "ray": ("head", "worker")}
"""Plugins for frameworks, and what each calls the tasks of a job. Ray's needs no variables."""
_ALWAYS = ("ssh", "svc", "env")


def _plugins(plugins: Fields, job: JobFile) -> None:
    """What the tasks find: that of one framework beside ssh, svc and env, which are always there."""
    asked = [name for name in plugins.names() if name in _FRAMEWORKS]
    if len(asked) > 1:
        raise plugins.fail(asked[1], f"a job has one framework, and there is {asked[0]}")
    for name in plugins.names():
        words = _arguments(plugins, name)
        if name in _FRAMEWORKS:
            _framework(plugins, name, words, job)
        elif name not in _ALWAYS:
            job.ignore(f"plugins.{name}")


def _arguments(plugins: Fields, name: str) -> dict[str, str]:
    """``--master=head`` or ``--master head``, as Go's flags are written."""
    found: dict[str, str] = {}
    words = iter(plugins.words(name))
    for word in words:
        option, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not option:
            raise plugins.fail(name, f"{word[:64]}: an argument is --NAME=VALUE")
        found[option] = value if equals else next(words, "")
    return found


def _framework(plugins: Fields, plugin: str, words: dict[str, str], job: JobFile) -> None:
    """A port is one that is free on its host, whatever number is given: many jobs share a host."""
    known = {role.name: role for role in job.roles}
    named = {}
    for word in _FRAMEWORKS[plugin]:
        named[word] = words.pop(word, word)
        if named[word] != word and named[word] not in known:
            raise plugins.fail(plugin, f"--{word}={named[word][:64]}: there is no such task")
    words.pop("port", None)
    if plugin == "ray":
        head = known.get(named["head"])
        if head is None:
            raise plugins.fail(plugin, f"there is no task {named['head']}")
        _ray(head, known.get(named["worker"]), words)
    else:
        said = [f"{word}={role}" for word, role in named.items() if word != role]
        job.policy.framework = f"volcano({','.join([plugin, *said])})"
    job.ignore(*(f"plugins.{plugin}.{word[:64]}" for word in words))


def _ray(head: Role, worker: Role | None, words: dict[str, str]) -> None:
    """Ray is started in both, with the CPUs and GPUs of the task and not of the whole host."""
    for name in ("headContainer", "workerContainer"):
        words.pop(name, None)
    ports = {"dashboardPort": "dashboard-port", "clientPort": "ray-client-server-port"}
    given = {option: words.pop(name) for name, option in ports.items() if name in words}
    head.command = f"exec {ray.start(head, params={'dashboard-host': '0.0.0.0'} | given)}"
    if worker is not None:
        worker.command = f"exec {ray.start(worker, head.name)}"


def _of_evicted(policy: Fields) -> bool:
    """Whether a policy says what becomes of a pod that has lost its host."""
    return not _EVICTED.isdisjoint((*policy.words("events"), policy.text("event")))


def _evicted(action: str, events: list[str], delay: int, job: JobFile) -> bool:
    """Whether a policy restarts what loses its host (PodEvicted): then all starts again, and at once."""
    if action not in _RESTARTS or _EVICTED.isdisjoint(events):
        return False
    job.options["r"] = True
    if action != "RestartJob":
        job.ignore(f"policies.{action} of a host that is lost (all start again)")
    if delay:
        job.ignore("policies.timeout (of PodEvicted)")
    return True


def _policies(fields: Fields, job: JobFile) -> list[Action]:
    found: list[Action] = []
    seen: set[str] = set()
    for one in fields.items("policies"):
        action = one.text("action")
        events = [*one.words("events"), *([one.text("event")] if "event" in one else [])]
        code, delay = one.number("exitCode", -1), _seconds(one, "timeout")
        if "exitCode" in one and not 1 <= code <= 255:
            raise one.fail("exitCode", f"{code} is not between 1 and 255")
        if not action or not (events or code >= 0):
            raise Fail(f"{one.where}: a policy is an action and an event or exit code")
        for word in [f"{event} {code}" if code >= 0 else event for event in events or [""]]:
            if word in seen:
                raise Fail(f"{one.where}: {word.strip()[:64]} is given twice")
            seen.add(word)
        if _evicted(action, events, delay, job):
            events = [event for event in events if event != "PodEvicted"]
        elif action not in _ACTIONS:
            job.ignore(f"policies.{action[:64]}")
            continue
        if code >= 0 and not events:
            events = ["TaskFailed"]
        for event in events:
            if event in _EVENTS:
                found.append((_EVENTS[event], f"{_ACTIONS[action]}({delay})" if delay else _ACTIONS[action], code))
            else:
                job.ignore(f"policies.{event[:64]}")
        job.ignore(*(f"policies.{name}" for name in one.others(("event", "events", "exitCode"))))
    return found

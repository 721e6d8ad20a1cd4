"""Volcano's Job: tasks with policies, minAvailable, plugins."""

from __future__ import annotations

from cli.client.context import Fail
from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.model import Action, JobFile, Policy, Role

_EVENTS = {
    "TaskFailed": "TaskFailed",
    "PodFailed": "TaskFailed",
    "TaskCompleted": "TaskCompleted",
    "AnyEvent": "Any",
    "*": "Any",
}
_ACTIONS = {
    "RestartJob": "RestartJob",
    "RestartTask": "RestartTask",
    "RestartPod": "RestartTask",
    "AbortJob": "AbortJob",
    "TerminateJob": "AbortJob",
    "CompleteJob": "CompleteJob",
}


def read_volcano(spec: Fields, job: JobFile) -> None:
    """A Job of batch.volcano.sh/v1alpha1."""
    job.policy = Policy(framework="volcano", success="all", backoff=spec.number("maxRetry", 3))
    queue = spec.text("queue")
    if queue and queue != "default":
        job.options["q"] = queue
    job.priority_class = spec.text("priorityClassName")
    plugins = spec.part("plugins")
    for name in plugins.names():
        plugins.any(name)
        if name not in ("ssh", "svc", "env"):
            job.ignore(f"plugins.{name}")
    job.policy.actions = _policies(spec, job)
    for at, row in enumerate(spec.rows("tasks")):
        _task(Fields(row, f"{spec.where}.tasks[{at}]"), job)
    if not job.roles:
        raise spec.fail("tasks", "there is none")
    if any(role.kind == "hold" for role in job.roles):
        for role in job.roles:
            role.kind = role.kind or "launcher"
    job.start_together(spec.number("minAvailable", sum(role.least or role.count for role in job.roles)))


def _task(task: Fields, job: JobFile) -> None:
    role = Role(task.text("name") or "task", count=task.number("replicas", 1))
    role.least = task.number("minAvailable", 0)
    template = task.part("template")
    pods.read_template(template, role, job)
    role.restart = template.part("spec").text("restartPolicy", "Never")
    role.actions = _policies(task, job)
    pods.hold(role, only_sshd=True)
    if task.part("dependsOn").names():
        task.any("dependsOn")
        role.kind = role.kind or "launcher"
    job.ignore(*(f"tasks.{name}" for name in task.others()))
    job.roles.append(role)


def _policies(fields: Fields, job: JobFile) -> list[Action]:
    found: list[Action] = []
    for at, row in enumerate(fields.rows("policies")):
        one = Fields(row, f"{fields.where}.policies[{at}]")
        action = one.text("action")
        events = [*one.words("events"), *([one.text("event")] if "event" in one else [])]
        code = one.number("exitCode", -1)
        if not action or not (events or code >= 0):
            raise Fail(f"{one.where}: a policy is an action and an event or exit code")
        if "PodEvicted" in events and action == "RestartJob":
            job.options["r"] = True  # whoever loses its host runs again
            events.remove("PodEvicted")
        elif action not in _ACTIONS:
            job.ignore(f"policies.{action[:64]}")
            continue
        if code >= 0 and not events:
            events = ["TaskFailed"]
        for event in events:
            if event in _EVENTS:
                found.append((_EVENTS[event], _ACTIONS[action], code))
            else:
                job.ignore(f"policies.{event[:64]}")
        job.ignore(*(f"policies.{name}" for name in one.others(("event", "events", "exitCode"))))
    return found

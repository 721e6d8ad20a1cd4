"""Kubernetes' own Job (batch/v1): completions are the elements of an array, each a job of one task.

Those that know each other (``subdomain``) and run all at once are the tasks of one job.
"""

from __future__ import annotations

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.identity import Hosts, Identity, of_pod, plain
from cli.jobs.model import JobFile, Policy, Role, minutes_of
from cli.jobs.pod_failures import read_pod_failures, read_success, runs_of, term_of
from proto.roles import MAX_TASKS

_LIMIT = "backoffLimitPerIndex"
_INDEX = "$((LSB_JOBINDEX - 1))"
"""Kubernetes counts completions from 0, LSF the elements of an array from 1."""


def read_batch(spec: Fields, job: JobFile) -> None:
    """A Job of batch/v1."""
    together = spec.number("parallelism", 1)
    count = spec.number("completions", together)
    mode = spec.text("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        raise spec.fail("completionMode", f"{mode[:40]}: it is NonIndexed or Indexed")
    for name, number in (("parallelism", together), ("completions", count)):
        if number < 1:
            raise spec.fail(name, f"{number} pods are no job")
    role = Role("pod")
    template = spec.part("template")
    is_gang = 1 < count <= together and mode == "Indexed" and "subdomain" in template.part("spec") and _LIMIT not in spec
    is_array = not is_gang and (count > 1 or mode == "Indexed")
    job.identities[role.name] = _identity(job, role.name, is_array, mode)
    if is_gang:
        role.count = count
        _find_each_other(job.identities[role.name], spec, str(job.options.get("J", "job")), count)
    role.restart = template.part("spec").text("restartPolicy", "Never")
    if role.restart not in ("Never", "OnFailure"):
        raise template.part("spec").fail("restartPolicy", f"{role.restart[:40]}: it is Never or OnFailure")
    _failures(spec, role, job, "gang" if is_gang else "array" if is_array else "one")
    if "successPolicy" in spec:
        if mode != "Indexed":
            raise spec.fail("successPolicy", "it needs completionMode: Indexed")
        rules = read_success(spec, count)
        if is_gang:
            terms = [term_of(role.name, indexes or [*range(count)], count, number) for number, indexes in rules]
            job.policy.success = " | ".join(terms)
        else:
            job.policy.array_success = [_enough(*rule) for rule in rules]
    pods.read_deadline(spec, job)
    if seconds := pods.deadline_of(template.part("spec")):
        job.options["W"] = minutes_of(min(seconds, pods.deadline_of(spec) or seconds))
    if (replaced := spec.text("podReplacementPolicy", "Failed")) not in ("Failed", "TerminatingOrFailed"):
        raise spec.fail("podReplacementPolicy", f"{replaced[:40]}: it is Failed or TerminatingOrFailed")
    pods.read_template(template, role, job)
    job.roles.append(role)
    if is_array:
        job.options["J"] = f"{job.options.get('J', 'job')}[1-{count}]" + (f"%{together}" if together < count else "")


def _find_each_other(one: Identity, spec: Fields, name: str, count: int) -> None:
    """The host names of the pods in commands and variables are addresses."""
    if count > MAX_TASKS:
        raise spec.fail("completions", f"{count} pods that know each other are one job, which has at most {MAX_TASKS} tasks")
    one.hosts = Hosts(tasks={f"{name}-{index}": (one.role, index) for index in range(count)})
    one.hosts.find(spec.part("template").part("spec").text("subdomain"))


def _failures(spec: Fields, role: Role, job: JobFile, kind: str) -> None:
    """How often pods are started again, which exit codes and how many indexes that fail end the whole Job."""
    is_array, of_each = kind == "array", _LIMIT in spec
    backoff = spec.number(_LIMIT, 0) if of_each else spec.number("backoffLimit", 6)
    if of_each and "backoffLimit" in spec:
        job.ignore("backoffLimit (backoffLimitPerIndex holds)")
    spec.any("backoffLimit")
    job.policy = Policy(success="all", backoff=backoff, array_backoff=is_array and not of_each)
    if "maxFailedIndexes" in spec:
        if not of_each:
            raise spec.fail("maxFailedIndexes", "it needs backoffLimitPerIndex")
        job.policy.array_failures = spec.number("maxFailedIndexes", 0)
    found = read_pod_failures(spec, job)
    if "FailIndex" in (*found.by_code.values(), found.other, found.lost) and not of_each:
        raise spec.fail("podFailurePolicy", "FailIndex needs backoffLimitPerIndex")
    if backoff > 0 or found.lost in ("Ignore", "Count"):
        job.options["r"] = True  # a pod that loses its host is replaced, which counts for nothing
    if found.lost in ("FailJob", "FailIndex"):
        job.options.pop("r", None)
    if found.lost == "Count" or (found.lost == "FailJob" and is_array):
        job.ignore(f"podFailurePolicy: {found.lost} (of a lost host: {_OF_LOST[found.lost]})")
    if role.restart == "Never":
        done = _ACTIONS | {"FailJob": "AbortArray" if is_array else "AbortJob"}
        if kind == "gang":
            done |= dict.fromkeys(("Ignore", "Count"), "RestartTask")  # in its place, while the others run on
            if "Ignore" in (*found.by_code.values(), found.other):
                job.ignore("podFailurePolicy: Ignore (it counts)")
        rest = done[found.other or "Count"]  # a new pod takes the place of one that failed
        actions = [("TaskFailed", done[action], code) for code, action in found.by_code.items()]
        job.policy.actions = [*(one for one in actions if one[1] != rest), ("TaskFailed", rest, -1)]
    elif "podFailurePolicy" in spec:
        raise spec.fail("podFailurePolicy", "it needs restartPolicy: Never")


_ACTIONS = {"FailIndex": "AbortJob", "Ignore": "RestartJobUncounted", "Count": "RestartJob"}
_OF_LOST = {"Count": "it counts for nothing", "FailJob": "its own index fails"}


def _enough(count: int, indexes: list[int]) -> str:
    """A rule of successPolicy in lava's words, whose elements count from 1."""
    if not indexes:
        return str(count)
    named = ",".join(
        str(first) if first == last else f"{first}-{last}" for first, last in runs_of([index + 1 for index in indexes])
    )
    return f"{'' if count == len(indexes) else count}[{named}]"


def _identity(job: JobFile, role: str, is_array: bool, mode: str) -> Identity:
    """What a pod of it finds: the number of its completion, where they have numbers."""
    name = str(job.options.get("J", "job"))
    one = of_pod(name, str(job.options.get("P", "")), role, f"{plain(name)}-{_INDEX if is_array else '$LAVA_INDEX'}")
    one.fields |= {"batch.kubernetes.io/job-name": plain(name), "job-name": plain(name)}
    if mode == "Indexed":
        index = _INDEX if is_array else "$LAVA_INDEX"
        one.env = {"JOB_COMPLETION_INDEX": index}
        one.fields["batch.kubernetes.io/job-completion-index"] = index
    return one

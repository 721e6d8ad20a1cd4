"""Kubernetes' own Job (batch/v1): completions are the elements of an array, each a job of one task."""

from __future__ import annotations

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.identity import Identity, of_pod, plain
from cli.jobs.model import JobFile, Policy, Role

_INDEX = "$((LSB_JOBINDEX - 1))"
"""Kubernetes counts completions from 0, LSF the elements of an array from 1."""


def read_batch(spec: Fields, job: JobFile) -> None:
    """A Job of batch/v1. What Kubernetes counts over all pods, the failures, lava counts for each element."""
    together = spec.number("parallelism", 1)
    count = spec.number("completions", together)
    mode = spec.text("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        raise spec.fail("completionMode", f"{mode[:40]}: it is NonIndexed or Indexed")
    for name, number in (("parallelism", together), ("completions", count)):
        if number < 1:
            raise spec.fail(name, f"{number} pods are no job")
    backoff = spec.number("backoffLimitPerIndex", spec.number("backoffLimit", 6))
    final = final_codes(spec.part("podFailurePolicy"), job)
    job.policy = Policy(success="all", backoff=backoff, actions=[("TaskFailed", "AbortJob", code) for code in final])
    pods.read_deadline(spec, job)
    if backoff > 0:
        job.options["r"] = True  # a pod that loses its host is replaced
    role = Role("pod")
    is_array = count > 1 or mode == "Indexed"
    job.identities[role.name] = _identity(job, role.name, is_array, mode)
    template = spec.part("template")
    pods.read_template(template, role, job)
    role.restart = template.part("spec").text("restartPolicy", "Never")
    if role.restart == "Never":
        job.policy.actions.append(("TaskFailed", "RestartJob", -1))  # a new pod takes the place of one that failed
    job.roles.append(role)
    if is_array:
        job.options["J"] = f"{job.options.get('J', 'job')}[1-{count}]" + (f"%{together}" if together < count else "")


def _identity(job: JobFile, role: str, is_array: bool, mode: str) -> Identity:
    """What a pod of it finds: the number of its completion, where they have numbers."""
    name = str(job.options.get("J", "job"))
    one = of_pod(name, str(job.options.get("P", "")), role, f"{plain(name)}-{_INDEX if is_array else '$LAVA_INDEX'}")
    one.fields |= {"batch.kubernetes.io/job-name": plain(name), "job-name": plain(name)}
    if mode == "Indexed":
        one.env = {"JOB_COMPLETION_INDEX": _INDEX}
        one.fields["batch.kubernetes.io/job-completion-index"] = _INDEX
    return one


def final_codes(policy: Fields, job: JobFile) -> list[int]:
    """podFailurePolicy: the exit codes with which the job fails at once. What counts as any failure needs no rule."""
    found: list[int] = []
    for at, row in enumerate(policy.rows("rules")):
        rule = Fields(row, f"{policy.where}.rules[{at}]")
        action, codes = rule.text("action"), rule.part("onExitCodes")
        codes.any("containerName")
        if action == "FailJob" and codes.text("operator") == "In":
            found += [_code(codes, word) for word in codes.words("values")]
        elif action != "Count":
            job.ignore(f"podFailurePolicy.rules[{at}]")
    return found


def _code(codes: Fields, word: str) -> int:
    if not word.isdecimal() or not 0 < int(word[:4]) < 256:
        raise codes.fail("values", f"{word[:40]} is no exit code between 1 and 255")
    return int(word)

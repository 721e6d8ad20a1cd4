"""Kubernetes' own Job (batch/v1): completions are the elements of an array, each a job of one task."""

from __future__ import annotations

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.model import JobFile, Policy, Role

_INDEX = "export JOB_COMPLETION_INDEX=$((LSB_JOBINDEX - 1)); exec "
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
    role = Role("pod")
    template = spec.part("template")
    pods.read_template(template, role, job)
    role.restart = template.part("spec").text("restartPolicy", "Never")
    if role.restart == "Never":
        job.policy.actions.append(("TaskFailed", "RestartJob", -1))  # a new pod takes the place of one that failed
    job.roles.append(role)
    if count > 1 or mode == "Indexed":
        job.options["J"] = f"{job.options.get('J', 'job')}[1-{count}]" + (f"%{together}" if together < count else "")
    if mode == "Indexed" and role.command:
        role.command = _INDEX + role.command


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

"""JobSet (jobset.x-k8s.io): replicated jobs are roles of one job; those that wait for the end of others are a job behind it.

Rule: a pod is a task. Pods are numbered through the replicas of a replicated job: those of replica 0 first.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.identity import Hosts, Identity, address, plain, pod_index
from cli.jobs.jobset_success import success_of
from cli.jobs.levels import Order, read_levels
from cli.jobs.model import JobFile, Policy, Role, minutes_of
from cli.jobs.pod_failures import read_pod_failures
from proto.roles import MAX_TASKS

KIND = "JobSet"
GROUP = "jobset.x-k8s.io"
_LABEL = "jobset.sigs.k8s.io/"
_REASONS = ("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy")
_HAPPENS = ("BackoffLimitExceeded", "PodFailurePolicy")
"""Those by which a job fails here: a deadline is the run limit of all, and indexes have no limits of their own."""
_ACTIONS = {
    "FailJobSet": "AbortJob",
    "RestartJobSet": "RestartJob",
    "RestartJobSetAndIgnoreMaxRestarts": "RestartJobUncounted",
    "RestartJob": "RestartGroup",
    "RestartJobAndIgnoreMaxRestarts": "RestartGroupUncounted",
}
_STRATEGIES = ("Recreate", "BlockingRecreate", "InPlaceRestart")


def read_jobset(spec: Fields, _: Fields, job: JobFile, name: str, namespace: str) -> None:
    """A JobSet of v1alpha2. ``name``, ``namespace``: its own, of which its pods have their names."""
    job.policy = Policy(success="all", backoff=0)
    if spec.flag("suspend"):
        job.options["H"] = True
    parts = [Replicated(row, job) for row in spec.items("replicatedJobs")]
    if not parts:
        raise spec.fail("replicatedJobs", "there is none")
    if (tasks := sum(part.role.count for part in parts)) > MAX_TASKS:
        raise spec.fail("replicatedJobs", f"{tasks} pods: a job has at most {MAX_TASKS} tasks")
    names = [part.role.name for part in parts]
    if double := next((one for one in names if names.count(one) > 1), ""):
        raise spec.fail("replicatedJobs", f"{double[:64]} is there twice")
    _Names(spec, parts, name, namespace).tell(job)
    failures = _Failures(spec, parts, job)
    for part in parts:
        part.read_pod(failures.action_of)
    _deadlines(parts, job)
    job.policy.success = success_of(spec.part("successPolicy"), parts)
    _order(spec, parts, job)


class Replicated:
    """One of ``replicatedJobs``: ``jobs`` jobs of ``size`` pods each, which are the tasks of a role."""

    def __init__(self, row: Fields, job: JobFile) -> None:
        self.row = row
        self.job = job
        self.group = row.text("groupName", "default")
        self.jobs = row.number("replicas", 1)
        template = row.part("template")
        template.any("metadata")
        self.spec = template.part("spec")
        together = self.spec.number("parallelism", 1)
        self.size = self.spec.number("completions", together)
        for where, field, number in (
            (row, "replicas", self.jobs),
            (self.spec, "parallelism", together),
            (self.spec, "completions", self.size),
        ):
            if number < 1:
                raise where.fail(field, f"{number} pods are no job")
        if self.size > together:
            why = f"{self.size}, {together} at a time: the tasks of a JobSet run together (a Job of batch/v1 is an array)"
            raise self.spec.fail("completions", why)
        mode = self.spec.text("completionMode", "Indexed")
        if mode not in ("NonIndexed", "Indexed"):
            raise self.spec.fail("completionMode", f"{mode[:40]}: it is NonIndexed or Indexed")
        name = row.text("name")
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
            raise row.fail("name", f"{name[:64]!r} is no name of a replicated job")
        self.role = Role(name, count=self.jobs * self.size)

    def read_pod(self, action_of: Callable[[Replicated, str], str]) -> None:
        """Its template, and what follows from a failure. ``action_of``: what the JobSet does when one of its jobs has failed."""
        spec, role = self.spec, self.role
        template = spec.part("template")
        pods.read_template(template, role, self.job)
        in_pod = template.part("spec").text("restartPolicy", "OnFailure")
        if in_pod not in ("Never", "OnFailure"):
            raise template.part("spec").fail("restartPolicy", f"{in_pod[:40]}: it is Never or OnFailure")
        after, at_once = (_ACTIONS[action_of(self, why)] for why in ("BackoffLimitExceeded", "PodFailurePolicy"))
        failures = read_pod_failures(spec, self.job)
        role.actions = [("TaskFailed", at_once, code) for code, action in failures.by_code.items() if action == "FailJob"]
        others = {*failures.by_code.values(), failures.other, failures.lost} - {"", "FailJob", "Count"}
        if failures.other == "FailJob":
            others.add("NotIn")
        self.job.ignore(*(f"podFailurePolicy: {action}" for action in sorted(others)))
        role.backoff_each = "backoffLimitPerIndex" in spec
        limit = spec.number("backoffLimitPerIndex" if role.backoff_each else "backoffLimit", 6)
        if limit < 0:
            raise spec.fail("backoffLimitPerIndex" if role.backoff_each else "backoffLimit", f"{limit} is less than none")
        if role.backoff_each and self.size > 1:
            spec.any("maxFailedIndexes")
            self.job.ignore("maxFailedIndexes (a job fails with the first of its indexes that does)")
        if limit > 0:
            role.actions.append(("TaskFailed", "RestartTask", -1))
            role.backoff = limit
            if failures.lost != "FailJob":
                self.job.options["r"] = True  # a pod that loses its host is replaced
        role.actions.append(("TaskFailed", after, -1))
        role.group = self.size if self.jobs > 1 else 0
        self.job.roles.append(role)
        self.job.ignore(*(f"template.spec.{name}" for name in spec.others(("activeDeadlineSeconds", "successPolicy"))))


class _Names:
    """What pods of a JobSet are called, and what they know of themselves."""

    def __init__(self, spec: Fields, parts: list[Replicated], name: str, namespace: str) -> None:
        self.parts, self.name, self.namespace = parts, name, namespace
        network = spec.part("network")
        self.domain = network.text("subdomain", name)
        for field in ("enableDNSHostnames", "publishNotReadyAddresses"):
            network.any(field)
        self.coordinator = self._coordinator(spec.part("coordinator"))

    def tell(self, job: JobFile) -> None:
        """Put the identity of each role into the job."""
        hosts = Hosts()
        for part in self.parts:
            for number in range(part.role.count):
                pod = f"{self.name}-{part.role.name}-{number // part.size}-{number % part.size}"
                hosts.tasks[pod] = (part.role.name, number)
        hosts.find(self.domain)
        total = sum(part.jobs for part in self.parts)
        name, before = plain(self.name), 0
        groups: dict[str, int] = {}
        for part in self.parts:
            one = Identity(part.role.name, hosts=hosts)
            index, pod_number = pod_index(part.jobs, part.size)
            in_group = groups.get(part.group, 0)
            groups[part.group] = in_group + part.jobs
            whole = f"$(({index} + {before}))" if before else index
            one.env = {
                "JOBSET_NAME": name,
                "REPLICATED_JOB_NAME": part.role.name,
                "JOB_INDEX": index,
                "JOB_GLOBAL_INDEX": whole,
                "JOB_COMPLETION_INDEX": pod_number,
            }
            job_name = f"{name}-{part.role.name}-{index}"
            labels = {
                "jobset-name": name,
                "replicatedjob-name": part.role.name,
                "replicatedjob-replicas": str(part.jobs),
                "global-replicas": str(total),
                "job-index": index,
                "job-global-index": whole,
                "group-name": plain(part.group),
                "group-replicas": str(sum(other.jobs for other in self.parts if other.group == part.group)),
                "job-group-index": f"$(({index} + {in_group}))" if in_group else index,
            } | ({"coordinator": self.coordinator} if self.coordinator else {})
            one.fields = {
                **one.common(f"{job_name}-{pod_number}", self.namespace),
                **{_LABEL + label: value for label, value in labels.items()},
                "batch.kubernetes.io/job-completion-index": pod_number,
                "batch.kubernetes.io/job-name": job_name,
                "job-name": job_name,
            }
            job.identities[part.role.name] = one
            before += part.jobs

    def _coordinator(self, given: Fields) -> str:
        """The address of the pod that it names, "" without one."""
        name = given.text("replicatedJob")
        if not name:
            return ""
        part = next((one for one in self.parts if one.role.name == name), None)
        if part is None:
            raise given.fail("replicatedJob", f"{name[:64]}: there is no such replicated job")
        index, pod = given.number("jobIndex", 0), given.number("podIndex", 0)
        for field, number, limit in (("jobIndex", index, part.jobs), ("podIndex", pod, part.size)):
            if not 0 <= number < limit:
                raise given.fail(field, f"{number}: {name} has {limit}")
        return address(name, index * part.size + pod)


class _Failures:
    """failurePolicy: what is done once one of the jobs has failed, by the reason and by who it is."""

    def __init__(self, spec: Fields, parts: list[Replicated], job: JobFile) -> None:
        policy = spec.part("failurePolicy")
        self.given = "failurePolicy" in spec
        self.rules: list[tuple[list[str], list[str], str]] = []
        job.policy.backoff = max(0, policy.number("maxRestarts", 0))
        strategy = policy.text("restartStrategy", "Recreate")
        if strategy not in _STRATEGIES:
            raise policy.fail("restartStrategy", f"{strategy[:40]}: it is one of {', '.join(_STRATEGIES)}")
        if strategy == "InPlaceRestart":
            job.ignore("failurePolicy.restartStrategy (all start again as a new attempt)")
        names = [part.role.name for part in parts]
        for at, row in enumerate(policy.items("rules")):
            rule = _rule(row, names)
            self.rules.append(rule)
            if rule[1] and not set(rule[1]) & set(_HAPPENS):
                job.ignore(f"failurePolicy.rules[{at}] (of {', '.join(rule[1])})")
        if job.policy.backoff or any(action != "FailJobSet" for _, _, action in self.rules):
            job.options["r"] = True  # what loses a host starts again, which counts for nothing
        job.ignore(*(f"failurePolicy.{name}" for name in policy.others()))

    def action_of(self, part: Replicated, reason: str) -> str:
        """The action of the JobSet when a job has failed for this reason."""
        for targets, reasons, action in self.rules:
            if part.role.name in (targets or [part.role.name]) and reason in (reasons or [reason]):
                return action
        return "RestartJobSet" if self.given else "FailJobSet"


def _rule(rule: Fields, names: list[str]) -> tuple[list[str], list[str], str]:
    rule.any("name")
    action, targets, reasons = rule.text("action"), rule.words("targetReplicatedJobs"), rule.words("onJobFailureReasons")
    if action not in _ACTIONS:
        raise rule.fail("action", f"{action[:64]}: it is one of {', '.join(_ACTIONS)}")
    if unknown := next((name for name in targets if name not in names), ""):
        raise rule.fail("targetReplicatedJobs", f"{unknown[:64]}: there is no such replicated job")
    if unknown := next((one for one in reasons if one not in _REASONS), ""):
        raise rule.fail("onJobFailureReasons", f"{unknown[:64]}: it is one of {', '.join(_REASONS)}")
    if rule.words("onJobFailureMessagePatterns"):
        raise rule.fail("onJobFailureMessagePatterns", "lava has no messages of jobs: podFailurePolicy tells exit codes apart")
    return targets, reasons, action


def _deadlines(parts: list[Replicated], job: JobFile) -> None:
    """activeDeadlineSeconds of all replicated jobs is a run limit of the whole; lava has none for some of the tasks."""
    seconds = [pods.deadline_of(part.spec) for part in parts]
    if all(seconds):
        job.options["W"] = minutes_of(max(seconds))
    elif any(seconds):
        job.ignore("activeDeadlineSeconds (some replicated jobs have none)")


def _order(spec: Fields, parts: list[Replicated], job: JobFile) -> None:
    """startupPolicy and dependsOn: after whose start, or whose end, a replicated job begins."""
    policy = spec.part("startupPolicy")
    order = policy.text("startupPolicyOrder", "AnyOrder")
    if order not in ("AnyOrder", "InOrder"):
        raise policy.fail("startupPolicyOrder", f"{order[:40]}: it is AnyOrder or InOrder")
    orders: list[Order] = []
    for part, before in zip(parts, [None, *parts], strict=False):
        one = Order(part.role, part.row, ready=[before.role.name] if before and order == "InOrder" else [])
        for depends in part.row.items("dependsOn"):
            name, status = depends.text("name"), depends.text("status", "Ready")
            if name not in [other.role.name for other in orders]:
                raise depends.fail("name", f"{name[:64]}: it is one of the replicated jobs before it")
            if status not in ("Ready", "Complete"):
                raise depends.fail("status", f"{status[:40]}: it is Ready or Complete")
            (one.ready if status == "Ready" else one.done).append(name)
        orders.append(one)
        job.ignore(*(f"replicatedJobs.{name}" for name in part.row.others()))
    read_levels(orders, job)

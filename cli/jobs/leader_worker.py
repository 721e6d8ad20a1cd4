"""LeaderWorkerSet (leaderworkerset.x-k8s.io): each group of a leader and workers is a job with two roles, several an array.

Rule: groups live and start again apart from each other, and go on until they are killed, as pods of a StatefulSet do.
"""

from __future__ import annotations

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.identity import Hosts, Identity, address, plain
from cli.jobs.model import Action, JobFile, Policy, Role
from proto.roles import MAX_TASKS

KIND = "LeaderWorkerSet"
GROUP = "leaderworkerset.x-k8s.io"
_LABEL = "leaderworkerset.sigs.k8s.io/"
_WITH_GROUP = ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart")
_ALONE = ("None", "Default")
_MOST = 1_000_000
"""Restarts: in Kubernetes there are as many as are needed."""
_AGAIN: list[Action] = [("TaskFailed", "RestartJob", -1), ("TaskCompleted", "RestartJob", -1)]


def read_set(spec: Fields, meta: Fields, job: JobFile, name: str, namespace: str) -> None:
    """A LeaderWorkerSet of v1. ``meta``: its metadata; ``name``, ``namespace``: its own, of which its pods have their names."""
    groups, template = spec.number("replicas", 1), spec.part("leaderWorkerTemplate")
    size = template.number("size", 1)
    for where, field, number in ((spec, "replicas", groups), (template, "size", size)):
        if number < 1:
            raise where.fail(field, f"{number} is no number of {'groups' if field == 'replicas' else 'pods'} that could run")
    if size > MAX_TASKS:
        raise template.fail("size", f"{size} pods: a job has at most {MAX_TASKS} tasks")
    job.policy = Policy(success="all", backoff=_MOST)
    job.options["r"] = True  # a group that loses a host runs again
    if groups > 1:
        job.options["J"] = f"{job.options.get('J', 'job')}[1-{groups}]"
    job.roles = [Role("leader"), *([Role("worker", count=size - 1)] * (size > 1))]
    _names(spec, template, job, name, namespace, groups, size)
    policy = template.text("restartPolicy", _WITH_GROUP[0])
    if policy in _WITH_GROUP:
        job.policy.actions = _AGAIN
    elif policy not in _ALONE:
        raise template.fail("restartPolicy", f"{policy[:40]}: it is one of {', '.join((*_WITH_GROUP, *_ALONE))}")
    for role in job.roles:
        role.restart = "Always" if policy in _ALONE else "Never"
        own = "leaderTemplate" if role.name == "leader" and "leaderTemplate" in template else "workerTemplate"
        pods.read_template(template.part(own), role, job)
    start = spec.text("startupPolicy", "LeaderCreated")
    if start not in ("LeaderCreated", "LeaderReady"):
        raise spec.fail("startupPolicy", f"{start[:40]}: it is LeaderCreated or LeaderReady")
    for role in job.roles[1:]:
        role.after = ["leader"] if start == "LeaderReady" else []
    _topology(meta.part("annotations"), job)
    job.ignore(*(f"leaderWorkerTemplate.{one}" for one in template.others(("workerTemplate",))))


def _names(spec: Fields, template: Fields, job: JobFile, name: str, namespace: str, groups: int, size: int) -> None:
    """What pods are called, and what they know of themselves. Only those of the own group can be reached."""
    group = "$((LSB_JOBINDEX - 1))" if groups > 1 else "0"
    hosts = Hosts()
    network = spec.part("networkConfig")
    policy = network.text("subdomainPolicy", "Shared")
    if policy not in ("Shared", "UniquePerReplica"):
        raise network.fail("subdomainPolicy", f"{policy[:40]}: it is Shared or UniquePerReplica")
    if groups == 1:
        hosts.tasks = {f"{name}-0": ("leader", 0)} | {f"{name}-0-{one + 1}": ("worker", one) for one in range(size - 1)}
        hosts.find(name if policy == "Shared" else f"{name}-0")
    job.ignore(*(f"networkConfig.{one}" for one in network.others()))
    leader = f"{plain(name)}-{group}"
    subgroups = _Subgroups(template.part("subGroupPolicy"), size)
    for role in job.roles:
        leads = role.name == "leader"
        index = "0" if leads else "$((LAVA_INDEX + 1))"
        labels = {
            "name": plain(name),
            "group-index": group,
            "worker-index": index,
            "size": str(size),
            "replicas": str(groups),
            "leader-name": leader,
        }
        one = Identity(role.name, hosts=hosts)
        one.env = {"LWS_LEADER_ADDRESS": address("leader", 0), "LWS_GROUP_SIZE": str(size), "LWS_WORKER_INDEX": index}
        one.fields = {
            **one.common(leader if leads else f"{leader}-{index}", namespace),
            **{_LABEL + label: value for label, value in (labels | subgroups.labels(leads)).items()},
            "apps.kubernetes.io/pod-index": group if leads else index,
        }
        job.identities[role.name] = one


class _Subgroups:
    """subGroupPolicy: parts of a group, which pods know of by labels."""

    def __init__(self, policy: Fields, size: int) -> None:
        self.each = policy.number("subGroupSize", 0)
        kind = policy.text("subGroupPolicyType", "LeaderWorker")
        if kind not in ("LeaderWorker", "LeaderExcluded"):
            raise policy.fail("subGroupPolicyType", f"{kind[:40]}: it is LeaderWorker or LeaderExcluded")
        self.apart = bool(self.each) and (size - 1) % self.each == 0
        self.excluded = kind == "LeaderExcluded"
        if self.each < 0 or self.each > size or (self.each and not self.apart and (self.excluded or size % self.each)):
            raise policy.fail("subGroupSize", f"{self.each}: a group of {size} has no such parts")

    def labels(self, leads: bool) -> dict[str, str]:
        """The labels of the leader, or of the workers."""
        if not self.each or (leads and self.excluded):
            return {}
        # without the leader the workers make up whole parts, or the leader is the first of the first one
        place = "LAVA_INDEX" if self.apart else "(LAVA_INDEX + 1)"
        return {"subgroup-size": str(self.each), "subgroup-index": "0" if leads else f"$(({place} / {self.each}))"}


def _topology(annotations: Fields, job: JobFile) -> None:
    """The exclusive topology of a group: it is in one compute unit of this type; others may be there too."""
    if key := annotations.text(f"{_LABEL}exclusive-topology"):
        pods.keep_in_units(key, True, job)

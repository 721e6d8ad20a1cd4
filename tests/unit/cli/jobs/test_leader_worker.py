"""LeaderWorkerSet: groups as jobs, what their pods know, and what starts again with what."""

from __future__ import annotations

import subprocess

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
SAY = '[sh, -c, "echo $LWS_LEADER_ADDRESS $LWS_GROUP_SIZE $LWS_WORKER_INDEX"]'


def pod(command: str = SAY, env: str = "") -> str:
    return f"{{spec: {{containers: [{{name: c, command: {command}, env: [{env}]}}]}}}}"


def read(template: str = "size: 3,", more: str = "", worker: str = "", leader: str = "", meta: str = "") -> JobFile:
    text = (
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n"
        f"metadata: {{name: x, {meta}}}\nspec: {{{more} leaderWorkerTemplate: {{{template} workerTemplate: {worker or pod()}"
        f"{f', leaderTemplate: {leader}' if leader else ''}}}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


def said(job: JobFile, role: int, index: int = 0, **env: str) -> str:
    """What a task writes, with variables as an agent gives them."""
    given = {
        "PATH": "/usr/bin:/bin",
        "LAVA_INDEX": str(index),
        "LAVA_PEER_LEADER_0": "10.0.0.1:20000",
        "LSB_JOBINDEX": "0",
        **env,
    }
    done = subprocess.run(["/bin/sh", "-c", job.roles[role].command], env=given, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def test_a_group_is_a_leader_and_workers() -> None:
    """One template for both, or one each; the leader is the first of the group."""
    job = read()
    assert [(role.name, role.count) for role in job.roles] == [("leader", 1), ("worker", 2)]
    assert (job.options, job.ignored) == ({"J": "x", "r": True}, [])
    assert [said(job, 0), said(job, 1, 0), said(job, 1, 1)] == ["10.0.0.1 3 0", "10.0.0.1 3 1", "10.0.0.1 3 2"]
    two = read(leader=pod("[lead]"), worker=pod("[work]"))
    assert [role.command.rpartition("exec ")[2] for role in two.roles] == ["lead", "work"]
    assert [role.name for role in read("").roles] == ["leader"]


def test_groups_are_elements_of_an_array() -> None:
    assert read(more="replicas: 4,").options["J"] == "x[1-4]"


@pytest.mark.parametrize(
    ("path", "leader", "worker"),
    [
        ("metadata.name", "x-3", "x-3-2"),
        ("metadata.labels['leaderworkerset.sigs.k8s.io/name']", "x", "x"),
        ("metadata.labels['leaderworkerset.sigs.k8s.io/group-index']", "3", "3"),
        ("metadata.labels['leaderworkerset.sigs.k8s.io/worker-index']", "0", "2"),
        ("metadata.annotations['leaderworkerset.sigs.k8s.io/size']", "5", "5"),
        ("metadata.annotations['leaderworkerset.sigs.k8s.io/leader-name']", "x-3", "x-3"),
        ("metadata.labels['leaderworkerset.sigs.k8s.io/subgroup-index']", "0", "0"),
        ("metadata.labels['apps.kubernetes.io/pod-index']", "3", "2"),
    ],
)
def test_fields_of_the_pod_are_known(path: str, leader: str, worker: str) -> None:
    env = f'{{name: A, valueFrom: {{fieldRef: {{fieldPath: "{path}"}}}}}}'
    job = read("size: 5, subGroupPolicy: {subGroupSize: 2},", "replicas: 5,", pod('[echo, "$(A)"]', env))
    assert (said(job, 0, LSB_JOBINDEX="4"), said(job, 1, 1, LSB_JOBINDEX="4")) == (leader, worker)


@pytest.mark.parametrize(
    ("size", "each", "places"), [(5, 2, "0 0 1 1"), (4, 2, "0 1 1"), (3, 1, "0 1"), (3, 3, "0 0"), (7, 3, "0 0 0 1 1 1")]
)
def test_parts_of_a_group(size: int, each: int, places: str) -> None:
    """Where the workers alone fill them, the leader is one more in the first."""
    env = "{name: A, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['leaderworkerset.sigs.k8s.io/subgroup-index']\"}}}"
    job = read(f"size: {size}, subGroupPolicy: {{subGroupSize: {each}}},", "", pod('[echo, "$(A)"]', env))
    assert " ".join(said(job, 1, index) for index in range(size - 1)) == places


def test_names_of_pods_are_addresses_in_a_set_of_one_group() -> None:
    job = read(worker=pod("[echo, x-0.x, x-0-2.x.default.svc]"))
    assert said(job, 0, LAVA_PEER_WORKER_1="10.0.0.3:2") == "10.0.0.1 10.0.0.3"


@pytest.mark.parametrize(
    ("policy", "restart", "again"),
    [
        ("", "Never", True),
        ("restartPolicy: RecreateGroupOnPodRestart,", "Never", True),
        ("restartPolicy: RecreateGroupAfterStart,", "Never", True),
        ("restartPolicy: None,", "Always", False),
        ("restartPolicy: Default,", "Always", False),
    ],
)
def test_what_starts_again(policy: str, restart: str, again: bool) -> None:
    """The whole group, or the one that ended, without end."""
    job = read(f"size: 2, {policy}")
    assert ([role.restart for role in job.roles], job.policy.backoff) == ([restart] * 2, 1_000_000)
    assert job.policy.actions == ([("TaskFailed", "RestartJob", -1), ("TaskCompleted", "RestartJob", -1)] if again else [])


def test_workers_may_wait_for_their_leader() -> None:
    assert read(more="startupPolicy: LeaderReady,").roles[1].after == ["leader"]
    assert read(more="startupPolicy: LeaderCreated,").roles[1].after == []


def test_a_group_stays_in_a_unit_of_the_network() -> None:
    job = read(meta="annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: example.com/rack}")
    assert (job.options["R"], job.ignored) == (["cu[type=rack:maxcus=1]"], [])
    more = read(more="rolloutStrategy: {type: RollingUpdate},", meta="annotations: {a: b}")
    assert more.ignored == ["metadata.annotations", "rolloutStrategy"]


@pytest.mark.parametrize(
    ("template", "more", "why"),
    [
        ("size: 0,", "", "leaderWorkerTemplate.size: 0 is no number of pods"),
        ("size: 2000000000,", "", "leaderWorkerTemplate.size: 2000000000 pods: a job has at most 10000 tasks"),
        ("", "replicas: 0,", "replicas: 0 is no number of groups"),
        ("restartPolicy: Sometimes,", "", "leaderWorkerTemplate.restartPolicy: Sometimes: it is one of RecreateGroup"),
        ("", "startupPolicy: Later,", "startupPolicy: Later: it is LeaderCreated or LeaderReady"),
        ("", "networkConfig: {subdomainPolicy: None},", "networkConfig.subdomainPolicy: None: it is Shared or UniquePerReplica"),
        ("size: 6, subGroupPolicy: {subGroupSize: 4},", "", "leaderWorkerTemplate.subGroupPolicy.subGroupSize: 4: a group of 6"),
        ("size: 2, subGroupPolicy: {subGroupSize: 3},", "", "leaderWorkerTemplate.subGroupPolicy.subGroupSize: 3: a group of 2"),
        ("size: 4, subGroupPolicy: {subGroupSize: 2, subGroupPolicyType: LeaderExcluded},", "",
         "leaderWorkerTemplate.subGroupPolicy.subGroupSize: 2: a group of 4"),
        ("subGroupPolicy: {subGroupPolicyType: X},", "", "leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType: X: it is"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_by_its_name(template: str, more: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(template, more)
    assert failed.value.text.removeprefix("job.yaml.spec.").startswith(why)

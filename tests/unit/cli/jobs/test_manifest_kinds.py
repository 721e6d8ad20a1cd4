"""Manifests of JAXJob, XGBoostJob, PaddleJob and MXJob: their roles in the order of the ranks, and who decides."""

from __future__ import annotations

import json
import subprocess

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
CONTAINER = "template: {spec: {containers: [{name: sidecar, command: [s]}, {name: %s, command: [sh, -c, %s]}]}}"


def manifest(
    kind: str, container: str, roles: dict[str, int], more: str = "", command: str = "x", meta: str = "name: x"
) -> JobFile:
    field = {"JAXJob": "jax", "XGBoostJob": "xgb", "PaddleJob": "paddle", "MXJob": "mx"}[kind] + "ReplicaSpecs"
    pod = CONTAINER % (container, command)
    specs = ", ".join(f"{name}: {{replicas: {count}, {pod}}}" for name, count in roles.items())
    text = f"apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{{meta}}}\nspec: {{{more} {field}: {{{specs}}}}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


def roles(job: JobFile) -> list[tuple[str, int, int, str]]:
    return [(role.name, role.least, role.count, role.restart) for role in job.roles]


def test_a_jaxjob() -> None:
    job = manifest("JAXJob", "jax", {"Worker": 3}, command='"--at=$(COORDINATOR_ADDRESS)"')
    assert (job.policy.framework, job.policy.success, roles(job)) == ("jax", "worker", [("worker", 0, 3, "Never")])
    assert job.roles[0].command == 'sh -c --at="${COORDINATOR_ADDRESS}"'
    assert job.ignored == ["further containers"]


@pytest.mark.parametrize(("given", "found"), [("", "1"), ("env: [{name: PYTHONUNBUFFERED, value: ''}],", "")])
def test_python_writes_each_line_at_once_as_their_operators_have_it(given: str, found: str) -> None:
    pod = f"template: {{spec: {{containers: [{{{given} command: [a]}}]}}}}"
    for kind, field in (("JAXJob", "jax"), ("PyTorchJob", "pytorch"), ("XGBoostJob", "xgb")):
        rows = f"Master: {{{pod}}}" if kind != "JAXJob" else f"Worker: {{{pod}}}"
        text = f"apiVersion: kubeflow.org/v1\nkind: {kind}\nspec: {{{field}ReplicaSpecs: {{{rows}}}}}\n"
        (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
        assert job.roles[0].env["PYTHONUNBUFFERED"] == found


def test_an_xgboostjob() -> None:
    job = manifest("XGBoostJob", "xgboost", {"Worker": 2, "Master": 1}, "runPolicy: {cleanPodPolicy: All},")
    assert (job.policy.framework, job.policy.success, job.policy.clean) == ("xgboost", "master", "all")
    assert roles(job) == [("master", 0, 1, "Never"), ("worker", 0, 2, "Never")]


def test_a_paddlejob() -> None:
    """Workers alone train together; with masters these serve and decide; elasticPolicy bounds the workers."""
    job = manifest("PaddleJob", "paddle", {"Worker": 4}, "elasticPolicy: {minReplicas: 2, maxReplicas: 6, maxRestarts: 3},")
    assert (job.policy.framework, job.policy.success, roles(job)) == ("paddle", "worker", [("worker", 2, 6, "OnFailure")])
    assert job.env == {"PADDLE_MAX_RESTART": "3"}
    job = manifest("PaddleJob", "paddle", {"Worker": 2, "Master": 1})
    assert (job.policy.success, [role.name for role in job.roles]) == ("master", ["master", "worker"])


def test_an_mxjob() -> None:
    job = manifest("MXJob", "mxnet", {"Worker": 2, "Server": 2, "Scheduler": 1}, "jobMode: MXTrain,")
    assert (job.policy.framework, job.policy.success) == ("mxnet", "worker")
    assert [role.name for role in job.roles] == ["scheduler", "server", "worker"]
    assert all(role.command == "sh -c x" for role in job.roles)


@pytest.mark.parametrize(
    ("kind", "given", "more", "why"),
    [
        ("XGBoostJob", {"Worker": 2}, "", "job.yaml.spec.xgbReplicaSpecs: there is no Master"),
        ("MXJob", {"Scheduler": 1}, "", "job.yaml.spec.mxReplicaSpecs: there is no Worker"),
        ("MXJob", {"Worker": 1}, "jobMode: MXTune,", "job.yaml.spec.jobMode: MXTune: lava runs MXTrain"),
        ("JAXJob", {"Worker": 0}, "", "job.yaml.spec.jaxReplicaSpecs: no role has a replica"),
        (
            "PaddleJob",
            {"Worker": 0},
            "elasticPolicy: {minReplicas: 1},",
            "job.yaml.spec.paddleReplicaSpecs: no role has a replica",
        ),
        ("JAXJob", {"Master": 1}, "", "job.yaml.spec.jaxReplicaSpecs.Master: no such role: it is one of Worker"),
    ],
)
def test_what_cannot_run_is_refused(kind: str, given: dict[str, int], more: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        manifest(kind, "x", given, more)
    assert failed.value.text == why


SEEN = {
    "x-worker-1": "w1",
    "tcp://x-master-0:23": "tcp://m:23",
    "x-worker-0.team": "w0",
    "x-worker-0.team.svc,x-worker-1.team.svc.cluster.local": "w0,w1",
    "x-worker-0.x:4": "w0:4",
    "/data/x-worker-0/a": "/data/x-worker-0/a",
    "x-worker-0.log": "x-worker-0.log",
    "x-worker-2": "x-worker-2",
    "my-x-worker-0": "my-x-worker-0",
    "x-worker-01": "x-worker-01",
}


@pytest.mark.parametrize("kind", ["XGBoostJob", "PaddleJob"])
def test_pods_find_each_other_by_their_host_names(kind: str) -> None:
    """In commands and variables; what is no host's name stays as it is."""
    command = json.dumps(f"echo {' '.join(SEEN)} $HOST") + "], env: [{name: HOST, value: x-worker-1.team}"
    job = manifest(kind, "xgboost", {"Master": 1, "Worker": 2}, command=command, meta="name: x, namespace: team")
    peers = {"LAVA_PEER_MASTER_0": "m:1", "LAVA_PEER_WORKER_0": "w0:2", "LAVA_PEER_WORKER_1": "w1:3", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", job.roles[0].command], env=peers, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*SEEN.values(), "w1"]

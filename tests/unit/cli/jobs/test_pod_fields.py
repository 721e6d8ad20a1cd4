"""What variables of a manifest take from the pod itself, by fieldRef and resourceFieldRef, whatever its kind."""

from __future__ import annotations

import subprocess

import pytest

from cli.client.context import Fail
from cli.jobs.elastic import make_resizable
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
POD = """
template:
  metadata: {{labels: {{app: 'a "b" $c'}}, annotations: {{note: n, other: o}}}}
  spec:
    containers:
    - name: c
      command: {command}
      env: [{{name: A, valueFrom: {source}}}, {{name: B, value: "<$(A)>"}}]
      resources: {{requests: {{cpu: 1500m, memory: 1Gi}}, limits: {{memory: 2G}}}}
"""
KINDS = {
    "TFJob": ("kubeflow.org/v1", "tfReplicaSpecs: {{Worker: {{replicas: 3, {pod}}}}}"),
    "Volcano": ("batch.volcano.sh/v1alpha1", "tasks: [{{name: worker, replicas: 3, {pod}}}]"),
    "Job": ("batch/v1", "completionMode: Indexed, completions: 3, {pod}"),
}


def read(kind: str, source: str, command: str = '[sh, -c, \'echo "$A" "$B"\']') -> JobFile:
    version, spec = KINDS[kind]
    (pod,) = read_yaml("pod.yaml", POD.format(command=command, source=source))
    assert isinstance(pod, dict)
    text = (
        f"apiVersion: {version}\nkind: {'Job' if kind == 'Volcano' else kind}\nmetadata: {{name: x, namespace: team}}\n"
        f"spec: {{{spec.format(pod='template: {}')}}}\n"
    )
    (top,) = read_yaml("job.yaml", text)
    _put(top, pod["template"])
    (job,) = jobs_of([top], "job.yaml")
    return job


def _put(value: object, template: object) -> None:
    if isinstance(value, list):
        for one in value:
            _put(one, template)
    elif isinstance(value, dict):
        for name in value:
            if name == "template":
                value[name] = template
            else:
                _put(value[name], template)


def said(job: JobFile, **env: str) -> str:
    """What a task writes, with LAVA_ variables as an agent gives them."""
    given = {"PATH": "/usr/bin:/bin", "LAVA_INDEX": "2", "LAVA_HOST": "h7", "LSB_JOBINDEX": "3", **job.roles[0].env, **env}
    done = subprocess.run(["/bin/sh", "-c", job.roles[0].command], env=given, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


def field(path: str) -> str:
    return f'{{fieldRef: {{apiVersion: v1, fieldPath: "{path}"}}}}'


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("TFJob", "metadata.name", "x-worker-2"),
        ("TFJob", "metadata.namespace", "team"),
        ("TFJob", "metadata.labels['training.kubeflow.org/replica-index']", "2"),
        ("TFJob", "metadata.labels['app']", 'a "b" $c'),
        ("TFJob", "spec.nodeName", "h7"),
        ("Volcano", "metadata.name", "x-worker-2"),
        ("Volcano", "metadata.annotations['volcano.sh/task-index']", "2"),
        ("Volcano", "metadata.annotations['note']", "n"),
        ("Job", "metadata.name", "x-2"),
        ("Job", "metadata.annotations['batch.kubernetes.io/job-completion-index']", "2"),
    ],
)
def test_a_pod_knows_its_name_labels_and_number(kind: str, path: str, value: str) -> None:
    job = read(kind, field(path))
    assert said(job) == f"{value} <{value}>"
    assert not [one for one in job.ignored if one.startswith("env")]


def test_a_pod_knows_the_address_of_its_host() -> None:
    assert said(read("TFJob", field("status.podIP")), LAVA_PEER_WORKER_2="10.0.0.5:4000") == "10.0.0.5 <10.0.0.5>"


@pytest.mark.parametrize("path", ["metadata.uid", "metadata.labels['none']", "spec.serviceAccountName", "", "x"])
def test_what_no_task_has_is_named(path: str) -> None:
    assert "env A (valueFrom)" in read("TFJob", field(path)).ignored


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("resource: requests.cpu", "2"),
        ("resource: requests.cpu, divisor: 1m", "1500"),
        ("resource: requests.memory, divisor: 1Mi", "1024"),
        ("containerName: c, resource: limits.memory", "2000000000"),
    ],
)
def test_a_container_knows_its_resources(reference: str, value: str) -> None:
    job = read("TFJob", f"{{resourceFieldRef: {{{reference}}}}}")
    assert (job.roles[0].env["A"], said(job)) == (value, f"{value} <{value}>")


@pytest.mark.parametrize("reference", ["resource: limits.cpu", "resource: limits.ephemeral-storage", "resource: cpu", ""])
def test_resources_that_the_container_does_not_have_are_named(reference: str) -> None:
    assert "env A (valueFrom)" in read("TFJob", f"{{resourceFieldRef: {{{reference}}}}}").ignored


def test_a_divisor_is_an_amount() -> None:
    with pytest.raises(Fail, match=r"resourceFieldRef\.divisor: x is no number of CPUs"):
        read("TFJob", "{resourceFieldRef: {resource: requests.cpu, divisor: x}}")


def test_a_worker_that_asks_for_its_name_holds_its_slots_all_the_same() -> None:
    pod = "{spec: {containers: [{command: %s, env: [{name: A, valueFrom: %s}]}]}}"
    text = (
        "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: x}\nspec: {mpiReplicaSpecs: {"
        f"Launcher: {{template: {pod % ('[a]', field('metadata.name'))}}},"
        f" Worker: {{template: {pod % ('[sleep, infinity]', field('metadata.name'))}}}}}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    assert [(role.kind, role.command) for role in job.roles] == [
        ("launcher", 'export A="x-launcher-$LAVA_INDEX"; exec a'),
        ("hold", ""),
    ]


def test_torchrun_has_the_tasks_of_a_host_as_one() -> None:
    """So that none has a name of its own: such a job does not grow while it runs."""
    text = (
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: x}\n"
        "spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 4}, pytorchReplicaSpecs: {Worker: {template: {spec: {containers: ["
        f"{{name: c, command: [torchrun, a.py], env: [{{name: A, valueFrom: {field('metadata.name')}}}]}}]}}}}}}}}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    make_resizable(job, "job.yaml")
    assert [role.count for role in job.roles] == [4]
    assert "who they are" in job.ignored[-1]

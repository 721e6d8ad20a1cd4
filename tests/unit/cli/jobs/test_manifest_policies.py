"""Manifests: restart policies of pods, node selectors, scheduling policies."""

from __future__ import annotations

import pytest

from cli.jobs.local import use_priority_class
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
POD = "template: {spec: {restartPolicy: OnFailure, nodeSelector: {%s}, containers: [{name: pytorch, command: [p]}]}}"


def manifest(selector: str = "", replicas: str = "", scheduling: str = "") -> JobFile:
    text = (
        "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: x, namespace: default, labels: {team: a}}\nspec:\n"
        f"  runPolicy: {{schedulingPolicy: {{{scheduling}}}}}\n"
        f"  tfReplicaSpecs: {{Worker: {{{replicas} replicas: 4, {POD % selector}}}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


def test_a_restart_policy_of_the_pods_counts_where_the_replicas_have_none() -> None:
    job = manifest()
    assert (job.roles[0].restart, job.ignored) == ("OnFailure", ["metadata.labels"])
    job = manifest(replicas="restartPolicy: Never,")
    assert (job.roles[0].restart, job.ignored[0]) == ("Never", "Worker.template.spec.restartPolicy")


@pytest.mark.parametrize(
    ("selector", "resreq"),
    [
        ('disktype: ssd, gpu: "true"', "select[disktype==ssd && gpu]"),
        ('example.org/fast-net: "false"', "select[!fast_net]"),
        ("kubernetes.io/hostname: h1", "select[hname==h1]"),
        ("kubernetes.io/os: linux", ""),
        ("a b: c", ""),
    ],
)
def test_a_node_selector_chooses_hosts(selector: str, resreq: str) -> None:
    job = manifest(selector)
    assert job.roles[0].resreq == resreq
    assert ("nodeSelector.a b" in job.ignored) == ("a b" in selector)


def test_a_scheduling_policy_is_queue_priority_and_gang() -> None:
    text = "queue: night, priorityClass: high, minAvailable: 3, minResources: {cpu: 1}, scheduleTimeoutSeconds: 90"
    job = manifest(scheduling=text)
    assert (job.options["q"], job.options["ptl"]) == ("night", "2")
    assert [(role.least, role.count) for role in job.roles] == [(3, 4)]
    assert "schedulingPolicy.minResources" in job.ignored
    use_priority_class(job, lambda: "low=10 high=80")
    assert job.options["sp"] == "80"
    job = manifest(scheduling="priorityClass: high")
    use_priority_class(job, lambda: "")
    assert "sp" not in job.options
    assert job.ignored[-1] == "priority class high (LAVA_PRIORITY_CLASSES has none of this name)"
    job = manifest(scheduling='priorityClass: "7"')
    use_priority_class(job, lambda: "")
    assert job.options["sp"] == "7"

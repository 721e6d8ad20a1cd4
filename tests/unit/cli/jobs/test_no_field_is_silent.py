"""A field of a manifest that lava does not know is named or refused, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from cli.client.context import Fail
from cli.jobs.manifests import KINDS, NAMED
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
EXAMPLES = Path(__file__).parents[4] / "examples"
FREE = ("labels", "annotations", "nodeSelector", "rayStartParams", "sparkConf", "hadoopConf", "limits", "requests", "resources")
"""Mappings whose fields have names of their writers', or which are named as a whole."""
POD = "template: {spec: {restartPolicy: Never, containers: [{name: main, command: [run]}]}}"
MORE = {
    "batch": f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: x}}
spec:
  completions: 2
  completionMode: Indexed
  backoffLimitPerIndex: 1
  successPolicy: {{rules: [{{succeededIndexes: "0", succeededCount: 1}}]}}
  podFailurePolicy:
    rules:
    - {{action: FailJob, onExitCodes: {{operator: In, values: [3]}}}}
    - {{action: Ignore, onPodConditions: [{{type: DisruptionTarget, status: "True"}}]}}
  {POD}
""",
    "jobset": f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: x}}
spec:
  network: {{subdomain: net}}
  coordinator: {{replicatedJob: a}}
  successPolicy: {{operator: All}}
  startupPolicy: {{startupPolicyOrder: AnyOrder}}
  failurePolicy: {{maxRestarts: 1, rules: [{{name: a, action: FailJobSet}}]}}
  replicatedJobs:
  - {{name: a, template: {{spec: {{{POD}}}}}}}
  - {{name: b, dependsOn: [{{name: a, status: Ready}}], template: {{spec: {{{POD}}}}}}}
""",
    "volcano": f"""
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: x}}
spec:
  networkTopology: {{mode: soft, highestTierAllowed: 1}}
  policies: [{{event: TaskFailed, action: RestartJob}}]
  tasks:
  - {{name: a, replicas: 2, policies: [{{event: TaskCompleted, action: CompleteJob}}], {POD}}}
  - {{name: b, dependsOn: {{name: [a]}}, {POD}}}
""",
    "pytorch": f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: x}}
spec:
  runPolicy: {{cleanPodPolicy: None, schedulingPolicy: {{queue: q}}}}
  elasticPolicy: {{minReplicas: 1, maxReplicas: 2}}
  pytorchReplicaSpecs: {{Worker: {{replicas: 2, {POD}}}}}
""",
}


def manifests() -> Iterator[tuple[str, list[Any]]]:
    """(name, documents) of the examples that are manifests, and of those above."""
    for path in sorted([*EXAMPLES.glob("roles/*.yaml"), *EXAMPLES.glob("ray/*.yaml"), *EXAMPLES.glob("spark/*.yaml")]):
        documents = read_yaml(path.name, path.read_text())
        if any(isinstance(one, dict) and one.get("kind") in KINDS for one in documents):
            yield path.name, documents
    for name, text in MORE.items():
        yield name, read_yaml(name, text)


def mappings(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of all mappings inside whose fields have names of lava's knowledge."""
    if isinstance(value, dict) and (not path or path[-1] not in FREE):
        yield path
        for name, one in value.items():
            yield from mappings(one, (*path, name))
    if isinstance(value, list):
        for at, one in enumerate(value):
            yield from mappings(one, (*path, at))


def is_of_a_template(documents: list[Any], path: tuple[str | int, ...]) -> bool:
    """Whether it is in what names a runtime or template, and not in what that says of jobs."""
    return documents[int(path[0])]["kind"] in NAMED and "spec" not in path


CASES = [
    (name, documents, path)
    for name, documents in manifests()
    for path in mappings(documents)
    if path and not is_of_a_template(documents, path)
]


@pytest.mark.parametrize(("name", "documents", "path"), CASES, ids=[f"{n}:{'.'.join(map(str, p))}" for n, _, p in CASES])
def test_no_field_is_silent(name: str, documents: list[Any], path: tuple[str | int, ...]) -> None:
    changed: Any = deepcopy(documents)
    inside = changed
    for step in path:
        inside = inside[step]
    inside["unheardOf"] = "yes"
    try:
        told = [one for job in jobs_of(changed, name) for one in job.ignored]
    except Fail as fail:
        told = [fail.text]
    assert any("unheardOf" in one for one in told), told

"""What a TrainJob changes in its runtime: runtimePatches, and the overrides of older versions."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
RUNTIME = """
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: own}
spec:
  mlPolicy: {torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          spec:
            template:
              spec:
                nodeSelector: {rack: a}
                containers: [{name: other}, {name: node, env: [{name: A, value: "1"}, {name: B, value: "2"}]}]
---
"""
POD = "nodeSelector: {disk: ssd}, containers: [{name: node, env: [{name: B, value: '3'}, {name: C, value: '4'}]}]"


def patch(name: str, pod: str = POD, more: str = "") -> str:
    jobs = f"replicatedJobs: [{{name: {name}, template: {{spec: {{template: {{spec: {{{pod}}}}}}}}}}}]"
    return f"runtimePatches: [{{manager: x/y, trainingRuntimeSpec: {{template: {{metadata: {{}}, spec: {{{jobs}}}}}}}{more}}}],"


def template(name: str, pod: str = POD) -> str:
    return f"podTemplateOverrides: [{{targetJobs: [{{name: {name}}}], spec: {{{pod}}}}}],"


def inline(name: str, pod: str = POD) -> str:
    return f"podSpecOverrides: [{{targetJobs: [{{name: {name}}}], {pod}}}],"


def read(more: str, runtime: str = "own", trainer: str = "command: [a]") -> JobFile:
    text = (
        f"{RUNTIME}apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {{name: x}}\n"
        f"spec: {{runtimeRef: {{name: {runtime}}}, {more} trainer: {{numNodes: 2, {trainer}}}}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


WAYS = pytest.mark.parametrize("way", [patch, template, inline])


@WAYS
def test_a_pod_has_what_the_runtime_says_and_what_the_job_changes(way: object) -> None:
    assert callable(way)
    (role,) = read(way("node")).roles
    assert role.env == {"A": "1", "B": "3", "C": "4"}
    assert role.resreq == "select[rack==a && disk==ssd]"


@WAYS
def test_a_runtime_that_kubeflow_ships_can_be_changed(way: object) -> None:
    assert callable(way)
    (role,) = read(way("node"), "torch-distributed").roles
    assert (role.env, role.resreq) == ({"B": "3", "C": "4"}, "select[disk==ssd]")
    launcher, node = read(way("launcher"), "deepspeed-distributed").roles
    assert (launcher.resreq, node.resreq) == ("select[disk==ssd]", "")


def test_what_the_trainer_says_stands_before_it() -> None:
    (role,) = read(patch("node"), trainer="command: [a], env: [{name: B, value: '9'}]").roles
    assert role.env["B"] == "9"


@WAYS
def test_a_job_that_the_runtime_does_not_have_is_named(way: object) -> None:
    assert callable(way)
    with pytest.raises(Fail) as failed:
        read(way("nodes"))
    assert failed.value.text.endswith(".name: nodes: the runtime has no such replicated job")


def test_a_change_that_means_nothing_here_is_named() -> None:
    job = read(patch("node", "tolerations: [{key: a}], serviceAccountName: s", ", more: 1"))
    assert job.ignored == ["runtimePatches.more", "further containers", "tolerations", "serviceAccountName"]
    assert read("podTemplateOverrides: [{spec: {}}],").ignored[0] == "podTemplateOverrides[0] (it names no targetJobs)"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("runtimePatches: 3,", "spec.runtimePatches: this is no list"),
        ("runtimePatches: [3],", "spec.runtimePatches[0]: this is no mapping of fields"),
        (patch("[a]"), "replicatedJobs[0].name: this is no text"),
        (
            patch("node", "containers: 3"),
            "own.spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers: this is no list",
        ),
        (patch("node", "containers: [3]"), "containers[0]: this is no mapping of fields"),
        ("podSpecOverrides: [{targetJobs: node}],", "spec.podSpecOverrides[0].targetJobs: this is no list"),
    ],
)
def test_what_cannot_be_read_is_one_line(more: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(more)
    assert failed.value.text.endswith(why)

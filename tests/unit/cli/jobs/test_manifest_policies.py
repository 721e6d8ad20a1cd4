"""Manifests: restart policies of pods, node selectors, scheduling policies."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
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


@pytest.mark.parametrize("where", ["runPolicy: {%s},", "%s,"])
def test_a_deadline_is_the_time_of_the_whole_job(where: str) -> None:
    given = where % "activeDeadlineSeconds: 90"
    worker = "tfReplicaSpecs: {Worker: {template: {spec: {containers: [{name: tensorflow, command: [p]}]}}}}"
    text = f"apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {{name: x}}\nspec: {{{given} {worker}}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    assert (job.policy.time_limit, job.options["W"]) == (90, "2")


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
    assert job.ignored[:2] == [
        "schedulingPolicy.minResources",
        "minAvailable once the job runs (tasks that find no room when it starts do not run)",
    ]
    use_priority_class(job, lambda: "low=10 high=80")
    assert job.options["sp"] == "80"
    job = manifest(scheduling="priorityClass: high")
    use_priority_class(job, lambda: "")
    assert "sp" not in job.options
    assert job.ignored[-1] == "priority class high (LAVA_PRIORITY_CLASSES has none of this name)"
    job = manifest(scheduling='priorityClass: "7"')
    use_priority_class(job, lambda: "")
    assert job.options["sp"] == "7"


GANG = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: x}
spec:
  tasks:
  - {name: a, replicas: 1, template: {spec: {containers: [{command: [a]}]}}}
  - {name: b, replicas: 2, template: {spec: {containers: [{command: [b]}]}}}
"""
ELASTIC = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  elasticPolicy: {minReplicas: 3, maxReplicas: 2}
  pytorchReplicaSpecs: {Worker: {replicas: 2, template: {spec: {containers: [{name: pytorch, command: [torchrun, a.py]}]}}}}
"""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            GANG.replace("  tasks:", "  minAvailable: 4\n  tasks:"),
            r"spec.minAvailable: 4 is not between 0 and 3, the tasks of the job",
        ),
        (GANG.replace("  tasks:", "  minAvailable: -1\n  tasks:"), r"spec.minAvailable: -1 is not between"),
        (GANG.replace("name: b", "name: a"), r"spec: a is given twice"),
        (
            GANG.replace("  tasks:", "  policies: [{exitCode: 256, action: AbortJob}]\n  tasks:"),
            r"exitCode: 256 is not between 1 and 255",
        ),
        (ELASTIC, r"elasticPolicy.minReplicas: 3 is more than maxReplicas, 2"),
        (
            "on: {TaskFailed(256): AbortJob}\nroles: {a: {command: b}}\n",
            r"TaskFailed\(256\): an event, perhaps with an exit code from 0",
        ),
    ],
)
def test_numbers_that_cannot_be_are_refused(text: str, why: str) -> None:
    """A gang of more tasks than there are would wait for ever; a task of a name that is taken would be lost."""
    with pytest.raises(Fail, match=why):
        jobs_of(read_yaml("job.yaml", text), "job.yaml")


def test_a_gang_of_a_scheduling_policy_is_not_larger_than_the_job() -> None:
    with pytest.raises(Fail, match="minAvailable: 5 is not between 0 and 4, the tasks of the job"):
        manifest(scheduling="minAvailable: 5")


KUBEFLOW = """
apiVersion: kubeflow.org/VERSION
kind: KIND
spec:
  runPolicy: {backoffLimit: LIMIT}
  FIELD: {LEAD: {RESTART template: {spec: {containers: [{name: a, command: [a]}]}}}}
"""


def kubeflow(kind: str, restart: str = "", limit: int = 3, version: str = "v1") -> JobFile:
    field, lead = {
        "MPIJob": ("mpiReplicaSpecs", "Launcher"),
        "PyTorchJob": ("pytorchReplicaSpecs", "Master"),
        "TFJob": ("tfReplicaSpecs", "Chief"),
    }[kind]
    words = {"KIND": kind, "FIELD": field, "LEAD": lead, "LIMIT": str(limit), "VERSION": version}
    text = KUBEFLOW.replace("RESTART", f"restartPolicy: {restart}," if restart else "")
    for word, value in words.items():
        text = text.replace(word, value)
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


@pytest.mark.parametrize(
    ("kind", "restart", "limit", "again"),
    [
        ("PyTorchJob", "", 3, True),
        ("PyTorchJob", "Never", 3, False),
        ("PyTorchJob", "", 0, False),
        ("TFJob", "", 3, False),
        ("TFJob", "ExitCode", 3, True),
        ("MPIJob", "OnFailure", 3, True),
    ],
)
def test_a_job_that_loses_a_host_starts_again_where_a_failed_pod_would(kind: str, restart: str, limit: int, again: bool) -> None:
    """Operators put another pod in the place of one that is gone with its node."""
    assert kubeflow(kind, restart, limit).options.get("r", False) is again


@pytest.mark.parametrize(
    ("version", "restart", "found"),
    [
        ("v2beta1", "", "OnFailure"),
        ("v2beta1", "Never", "OnFailure"),
        ("v1alpha2", "Never", "OnFailure"),
        ("v1", "", "Never"),
        ("v1", "OnFailure", "OnFailure"),
    ],
)
def test_the_launcher_of_an_mpijob_is_a_job_that_starts_its_pod_again(version: str, restart: str, found: str) -> None:
    """backoffLimit times, whatever the pod's own policy; that of v1 is a pod by itself."""
    assert [role.restart for role in kubeflow("MPIJob", restart, version=version).roles] == [found]

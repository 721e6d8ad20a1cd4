"""Kubernetes' own Job: its completions are the elements of an array, or the tasks of one job where they know each other."""

from __future__ import annotations

import subprocess

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")


def read(more: str = "", restart: str = "Never") -> JobFile:
    pod = f"template: {{spec: {{restartPolicy: {restart}, containers: [{{name: c, command: [echo, $(JOB_COMPLETION_INDEX)]}}]}}}}"
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: x}}\nspec: {{{more} {pod}}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ("", "x"),
        ("completions: 5, parallelism: 2,", "x[1-5]%2"),
        ("completions: 5, parallelism: 9,", "x[1-5]"),
        ("parallelism: 3,", "x[1-3]"),
        ("completionMode: Indexed,", "x[1-1]"),
    ],
)
def test_completions_are_elements(more: str, name: str) -> None:
    assert read(more).options["J"] == name


def test_failures_start_a_new_pod_or_the_container_again() -> None:
    """backoffLimit is that of each element; podFailurePolicy has exit codes that end it at once."""
    job = read("backoffLimit: 2, ttlSecondsAfterFinished: 5, suspend: true, activeDeadlineSeconds: 61,")
    assert (job.policy.backoff, job.policy.actions, job.roles[0].restart) == (2, [("TaskFailed", "RestartJob", -1)], "Never")
    assert (job.options["W"], job.options["H"], job.ignored) == ("2", True, ["ttlSecondsAfterFinished"])
    assert (job.policy.time_limit, read("activeDeadlineSeconds: 61, completions: 3,").policy.time_limit) == (61, 61)
    again = read("backoffLimitPerIndex: 1,", restart="OnFailure")
    assert (again.policy.backoff, again.policy.actions, again.roles[0].restart) == (1, [], "OnFailure")
    rules = (
        "{action: FailJob, onExitCodes: {operator: In, values: [42, 43]}}, {action: Count, onPodConditions: []},"
        " {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}"
    )
    bad = read(f"podFailurePolicy: {{rules: [{rules}]}},")
    assert bad.policy.actions == [
        ("TaskFailed", "AbortJob", 42),
        ("TaskFailed", "AbortJob", 43),
        ("TaskFailed", "RestartJob", -1),
    ]
    assert (bad.ignored, bad.options["r"]) == ([], True)


def test_a_pod_that_loses_its_host_is_replaced() -> None:
    assert read().options["r"] is True
    assert "r" not in read("backoffLimit: 0,").options


def test_an_index_counts_from_0() -> None:
    """In the environment, and where the manifest's own arguments name it."""
    role = read("completionMode: Indexed, completions: 3,").roles[0]
    done = subprocess.run(["/bin/sh", "-c", role.command], env={"LSB_JOBINDEX": "3"}, capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("completions: 0,", "job.yaml.spec.completions: 0 pods are no job"),
        ("parallelism: 0,", "job.yaml.spec.parallelism: 0 pods are no job"),
        ("completionMode: Any,", "job.yaml.spec.completionMode: Any: it is NonIndexed or Indexed"),
        (
            "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [0]}}]},",
            "job.yaml.spec.podFailurePolicy.rules[0].onExitCodes.values: 0 is no exit code between 1 and 255",
        ),
    ],
)
def test_what_is_no_job_is_refused(more: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(more)
    assert failed.value.text == why


def test_a_job_of_an_unknown_group_is_refused() -> None:
    with pytest.raises(Fail, match=r"x/v1: a Job is read of batch\.volcano\.sh/v1alpha1, batch/v1"):
        jobs_of(read_yaml("j", "apiVersion: x/v1\nkind: Job\nspec: {}\n"), "j")


# -- pods that know each other by name ------------------------------------------------------------------------------------------

ALL = "completions: 3, parallelism: 3, completionMode: Indexed,"


def read_gang(more: str = ALL, restart: str = "Never") -> JobFile:
    env = '{name: MASTER_ADDR, value: train-0.net}, {name: SAME, value: "train-1.net.team.svc.cluster.local:$(MASTER_ADDR)"}'
    command = '[sh, -c, "echo $JOB_COMPLETION_INDEX $MASTER_ADDR $SAME"]'
    pod = f"{{restartPolicy: {restart}, subdomain: net, containers: [{{name: c, command: {command}, env: [{env}]}}]}}"
    head = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train, namespace: team}\n"
    (job,) = jobs_of(read_yaml("job.yaml", f"{head}spec: {{{more} template: {{spec: {pod}}}}}\n"), "job.yaml")
    return job


def test_pods_know_their_numbers_and_each_other() -> None:
    job = read_gang()
    (role,) = job.roles
    assert (job.options["J"], role.count, job.policy.success, job.ignored) == ("train", 3, "all", [])
    peers = {f"LAVA_PEER_POD_{index}": f"10.0.0.{index}:99" for index in range(3)}
    env = {"PATH": "/usr/bin:/bin", "LAVA_INDEX": "2", **peers}
    done = subprocess.run(["/bin/sh", "-c", role.command], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "2 10.0.0.0 10.0.0.1:10.0.0.0\n"


@pytest.mark.parametrize(
    "more",
    [
        ALL.replace("parallelism: 3", "parallelism: 2"),
        ALL.replace("Indexed", "NonIndexed"),
        f"{ALL} backoffLimitPerIndex: 1,",
        "completionMode: Indexed,",
    ],
)
def test_pods_that_do_not_run_all_at_once_are_elements(more: str) -> None:
    """As are those of which each may fail by itself; what they are called is named as ignored then."""
    job = read_gang(more)
    assert "[1-" in str(job.options["J"])
    assert (job.roles[0].count, job.ignored) == (1, ["subdomain"])


def test_a_pod_that_failed_starts_again_in_its_place() -> None:
    job = read_gang(f"{ALL} backoffLimit: 2,")
    assert (job.policy.actions, job.policy.backoff, job.policy.array_backoff) == ([("TaskFailed", "RestartTask", -1)], 2, False)
    assert job.options["r"] is True
    assert read_gang(restart="OnFailure").policy.actions == []


def test_exit_codes_and_indexes_that_are_enough() -> None:
    codes = (
        "{action: FailJob, onExitCodes: {operator: In, values: [3]}}, {action: Ignore, onExitCodes: {operator: In, values: [4]}}"
    )
    rules = '{succeededIndexes: "0"}, {succeededIndexes: "1-2", succeededCount: 1}, {succeededCount: 2}'
    job = read_gang(f"{ALL} podFailurePolicy: {{rules: [{codes}]}}, successPolicy: {{rules: [{rules}]}},")
    assert job.policy.actions == [("TaskFailed", "AbortJob", 3), ("TaskFailed", "RestartTask", -1)]
    assert job.policy.success == "pod[0] | any(1,pod[1-2]) | any(2,pod)"
    assert job.ignored == ["podFailurePolicy: Ignore (it counts)"]

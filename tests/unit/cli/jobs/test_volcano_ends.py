"""When a Volcano job has ended, which of its tasks start together, those that are jobs of their own, and what starts again."""

from __future__ import annotations

import subprocess

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")


def task(name: str, replicas: int = 1, command: str = "[a]", more: str = "") -> str:
    return f"{{name: {name}, replicas: {replicas}, {more} template: {{spec: {{containers: [{{command: {command}}}]}}}}}}"


def read(spec: str, *tasks: str) -> JobFile:
    text = (
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x, namespace: team}\n"
        f"spec: {{{spec} tasks: [{', '.join(tasks)}]}}\n"
    )
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


SPARE = "minAvailable once the job runs (tasks that find no room when it starts do not run)"


@pytest.mark.parametrize(
    ("spec", "success", "least", "ignored"),
    [
        ("", "all", [0, 0], []),
        ("minAvailable: 5,", "all", [0, 0], []),
        ("minAvailable: 3,", "least(3)", [0, 2], [SPARE]),
        ("minAvailable: 0,", "least(1)", [0, 1], [SPARE]),
        ("minAvailable: 2, minSuccess: 4,", "any(4)", [0, 3], [SPARE]),
    ],
)
def test_as_many_have_to_end_well_as_start_together(spec: str, success: str, least: list[int], ignored: list[str]) -> None:
    """Once all have ended: a failure alone ends nothing."""
    job = read(spec, task("a"), task("b", 4))
    assert (job.policy.success, [role.least for role in job.roles], job.ignored) == (success, least, ignored)
    assert job.policy.actions == [("TaskFailed", "Ignore", -1)]


def test_tasks_that_hold_slots_do_not_count() -> None:
    sshd = "[/usr/sbin/sshd, -D]"
    assert read("minAvailable: 3,", task("a"), task("b", 2, sshd)).policy.success == "all"
    job = read("minAvailable: 2,", task("a", 3), task("b", 2, sshd))
    assert job.policy.success == "least(1)"


def test_policies_stand_before_what_is_so_without_any() -> None:
    job = read("policies: [{event: PodFailed, action: AbortJob}],", task("a", 2))
    assert job.policy.actions == [("TaskFailed", "AbortJob", -1), ("TaskFailed", "Ignore", -1)]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("{event: PodFailed, action: RestartJob}, {event: PodFailed, action: AbortJob}", "policies[1]: PodFailed"),
        (
            "{events: [PodFailed, PodEvicted], action: RestartJob}, {event: PodEvicted, action: AbortJob}",
            "policies[1]: PodEvicted",
        ),
        ("{exitCode: 3, action: RestartJob}, {exitCode: 3, action: AbortJob}", "policies[1]: 3"),
    ],
)
def test_an_event_has_one_action(rows: str, why: str) -> None:
    """As Volcano has it."""
    with pytest.raises(Fail) as failed:
        read(f"policies: [{rows}],", task("a"))
    assert failed.value.text == f"job.yaml.spec.{why} is given twice"


# -- tasks that know nothing of each other ---------------------------------------------------------------------------------


def test_tasks_that_are_apart_are_elements_of_an_array() -> None:
    """All of them run, whatever there is room for when the first start, each with its number."""
    job = read("minAvailable: 2, maxRetry: 7,", task("sweep", 9, "[sh, -c, 'echo $VC_TASK_INDEX $VK_TASK_INDEX']"))
    assert (job.options["J"], job.enough, job.policy.backoff, job.ignored) == ("x[1-9]", 2, 7, [])
    (role,) = job.roles
    assert (role.count, role.least) == (1, 0)
    given = {"PATH": "/usr/bin:/bin", "LSB_JOBINDEX": "4", "LAVA_INDEX": "0"}
    done = subprocess.run(["/bin/sh", "-c", role.command], env=given, capture_output=True, text=True, check=True)
    assert done.stdout == "3 3\n"


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        ("", ""),
        ("minAvailable: 9,", ""),
        ("minAvailable: 1, minSuccess: 2,", ""),
        ("minAvailable: 1, plugins: {svc: []},", ""),
        ("minAvailable: 1, plugins: {env: [], pytorch: []},", ""),
        ("minAvailable: 1, policies: [{event: PodFailed, action: RestartJob}],", ""),
        ("minAvailable: 1,", "policies: [{event: TaskCompleted, action: RestartJob}],"),
    ],
)
def test_tasks_that_start_end_or_talk_together_are_one_job(spec: str, more: str) -> None:
    assert read(spec, task("a", 9, more=more)).options["J"] == "x"


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        ("minAvailable: 1, plugins: {env: []},", ""),
        ("minAvailable: 1, policies: [{event: PodEvicted, action: RestartJob}],", ""),
        ("minAvailable: 1,", "policies: [{event: PodFailed, action: RestartPod}, {event: TaskCompleted, action: CompleteJob}],"),
        ("", "minAvailable: 3,"),
    ],
)
def test_what_keeps_them_apart(spec: str, more: str) -> None:
    assert read(spec, task("a", 9, more=more)).options["J"] == "x[1-9]"


@pytest.mark.parametrize("number", [-1, 10])
def test_no_more_start_together_than_there_are(number: int) -> None:
    with pytest.raises(Fail, match=rf"spec\.minAvailable: {number} is not between 0 and 9, the tasks of the job"):
        read(f"minAvailable: {number},", task("a", 9))


def after(*names: str, more: str = "") -> str:
    return f"dependsOn: {{name: [{', '.join(names)}], {more}}},"


def test_tasks_start_once_those_that_they_depend_on_run() -> None:
    """One that depends on all others is their launcher."""
    chain = read("", task("a"), task("b", more=after("a")), task("c", more=after("b", more="iteration: any")))
    assert [(role.kind, role.after) for role in chain.roles] == [("", []), ("", ["a"]), ("", ["b"])]
    last = read("", task("a"), task("none", 0), task("b", more=after("a", "none")))
    assert [(role.kind, role.after) for role in last.roles] == [("", []), ("launcher", [])]
    assert (chain.ignored, last.ignored) == ([], [])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (after("z"), "dependsOn.name: z: there is no such task"),
        (after("a", more="iteration: some"), "dependsOn.iteration: some: it is all or any"),
    ],
)
def test_an_order_that_is_none_is_refused(more: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read("", task("a"), task("b", more=more))
    assert failed.value.text == f"job.yaml.spec.tasks[1].{why}"


# -- what starts again: a pod, all pods of a task, those of a partition, all -------------------------------------------------

IGNORE = ("TaskFailed", "Ignore", -1)


def policy(action: str, more: str = "", event: str = "PodFailed") -> str:
    return f"policies: [{{event: {event}, action: {action}, {more}}}],"


@pytest.mark.parametrize(
    ("action", "done"),
    [
        ("RestartPod", "RestartTask"),
        ("RestartTask", "RestartRole"),
        ("RestartPartition", "RestartGroup"),
        ("RestartJob", "RestartJob"),
        ("TerminateJob", "AbortJob"),
    ],
)
def test_who_starts_again(action: str, done: str) -> None:
    job = read("", task("a", 4, more=policy(action)), task("b"))
    assert (job.roles[0].actions, job.ignored) == ([("TaskFailed", done, -1)], [])


@pytest.mark.parametrize(
    ("time", "seconds"), [("30s", 30), ("1m", 60), ("1h2m3s", 3723), ("1.5s", 2), ("100ms", 1), ("1m30.25s", 91)]
)
def test_a_policy_may_wait(time: str, seconds: int) -> None:
    job = read(policy("RestartJob", f"timeout: {time}"), task("a", 2))
    assert (job.policy.actions, job.ignored) == ([("TaskFailed", f"RestartJob({seconds})", -1), IGNORE], [])


def test_a_time_that_has_no_meaning_here_is_named() -> None:
    job = read(policy("RestartJob", "timeout: 1m", "PodEvicted"), task("a", 2))
    assert job.ignored == ["policies.timeout (of PodEvicted)"]
    with pytest.raises(Fail, match=r"policies\[0\]\.timeout: soon is no time such as 1h30m"):
        read(policy("RestartJob", "timeout: soon"), task("a", 2))


@pytest.mark.parametrize(
    ("event", "action", "again", "ignored"),
    [
        ("PodEvicted", "RestartJob", True, []),
        ("PodEvicted", "RestartPod", True, ["policies.RestartPod of a host that is lost (all start again)"]),
        ('"*"', "RestartJob", True, []),
        ("PodFailed", "RestartJob", True, []),
        ("PodEvicted", "AbortJob", False, ["policies.PodEvicted"]),
    ],
)
def test_a_job_that_loses_a_host_starts_again_where_pods_would(event: str, action: str, again: bool, ignored: list[str]) -> None:
    """Where no policy is about it, Volcano creates the pods that are missing."""
    job = read(policy(action, event=event), task("a", 2))
    assert (job.options.get("r", False), job.ignored) == (again, ignored)


def test_partitions_are_groups() -> None:
    job = read(
        "minAvailable: 1,",
        task("a", 8, more=f"partitionPolicy: {{totalPartitions: 4, partitionSize: 2}}, {policy('RestartPartition')}"),
    )
    assert (job.roles[0].group, job.options["J"]) == (2, "x")
    some = "partitionPolicy: {totalPartitions: 4, partitionSize: 2, minPartitions: 2, networkTopology: {mode: hard}},"
    assert read("", task("a", 8, more=some)).ignored == [
        "partitionPolicy.minPartitions (all of them start together)",
        "partitionPolicy.networkTopology",
    ]


@pytest.mark.parametrize(
    "given", ["totalPartitions: 3, partitionSize: 2", "partitionSize: 8", "totalPartitions: 0, partitionSize: 0"]
)
def test_partitions_that_are_not_all_replicas_are_refused(given: str) -> None:
    with pytest.raises(
        Fail, match=r"tasks\[0\]\.partitionPolicy\.partitionSize: \d partitions of \d are not the 8 replicas of the task"
    ):
        read("", task("a", 8, more=f"partitionPolicy: {{{given}}},"))


def pods(restart: str, more: str = "") -> str:
    return task("a", 2, more=more).replace("spec: {", f"spec: {{restartPolicy: {restart}, ")


@pytest.mark.parametrize(
    ("row", "backoff"),
    [
        (pods("OnFailure"), -1),
        (pods("OnFailure", "maxRetry: 5,"), 5),
        (pods("OnFailure", "maxRetry: 0,"), 3),
        (pods("OnFailure", "maxRetry: -1,"), 1_000_000),
        (pods("OnFailure", policy("AbortJob", event="TaskFailed")), 3),
        (pods("Always", "maxRetry: 2,"), 2),
    ],
)
def test_a_task_has_failed_once_its_pods_have_been_restarted_so_often(row: str, backoff: int) -> None:
    job = read("", row, task("b"))
    assert (job.roles[0].backoff, job.ignored) == (backoff, [])


def test_pods_that_never_start_again_have_no_limit_of_their_own() -> None:
    job = read("", pods("Never", "maxRetry: 5,"), task("b"))
    assert (job.roles[0].backoff, job.ignored) == (-1, ["tasks.maxRetry"])


@pytest.mark.parametrize(("given", "backoff"), [("", 3), ("maxRetry: 0,", 3), ("maxRetry: 7,", 7)])
def test_restarts_of_the_job(given: str, backoff: int) -> None:
    assert read(given, task("a", 2)).policy.backoff == backoff


def test_tasks_that_are_apart_start_again_alone() -> None:
    job = read("minAvailable: 1,", task("a", 4, more=policy("RestartTask")))
    assert (job.options["J"], job.roles[0].actions) == ("x[1-4]", [("TaskFailed", "RestartTask", -1)])
    assert job.ignored == ["policies.RestartTask of all pods (the one that failed starts again)"]

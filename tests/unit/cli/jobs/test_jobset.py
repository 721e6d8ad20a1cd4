"""JobSet: replicated jobs as roles, their names and numbers, who decides, what follows from failures, and in which order."""

from __future__ import annotations

import subprocess

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of, shown
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")


def part(name: str, more: str = "", spec: str = "", env: str = "", command: str = "[run]", outer: str = "") -> str:
    pod = f"template: {{spec: {{restartPolicy: Never, {more} containers: [{{name: c, command: {command}, env: [{env}]}}]}}}}"
    return f"{{name: {name}, {outer} template: {{spec: {{{spec} {pod}}}}}}}"


def read(*parts: str, more: str = "") -> list[JobFile]:
    text = (
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x, namespace: team}\n"
        f"spec: {{{more} replicatedJobs: [{', '.join(parts)}]}}\n"
    )
    return jobs_of(read_yaml("job.yaml", text), "job.yaml")


def one(*parts: str, more: str = "") -> JobFile:
    (job,) = read(*parts, more=more)
    return job


def said(job: JobFile, role: int, index: int, **env: str) -> str:
    """What a task writes, with LAVA_ variables as an agent gives them."""
    given = {"PATH": "/usr/bin:/bin", "LAVA_INDEX": str(index), "LAVA_HOST": "h7", **job.roles[role].env, **env}
    done = subprocess.run(["/bin/sh", "-c", job.roles[role].command], env=given, capture_output=True, text=True, check=True)
    return done.stdout.rstrip("\n")


WIDE = "parallelism: 2, completions: 2, backoffLimit: 0,"
ALL = '[sh, -c, "echo $JOBSET_NAME $REPLICATED_JOB_NAME $JOB_INDEX $JOB_GLOBAL_INDEX $JOB_COMPLETION_INDEX"]'


def test_pods_are_tasks_with_their_numbers() -> None:
    """Replica by replica; a job without replicas of its own counts by its pods alone."""
    job = one(part("a", command=ALL), part("b", spec=WIDE, outer="replicas: 3,", command=ALL), more="suspend: true,")
    assert [(role.name, role.count) for role in job.roles] == [("a", 1), ("b", 6)]
    assert (job.options, job.policy.success) == ({"J": "x", "P": "team", "H": True, "r": True}, "all")
    assert said(job, 0, 0) == "x a 0 0 0"
    assert [said(job, 1, index) for index in (0, 1, 5)] == ["x b 0 1 0", "x b 0 1 1", "x b 2 3 1"]
    alone = one(part("c", spec="parallelism: 4,", command=ALL))
    assert said(alone, 0, 3) == "x c 0 0 3"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "x-b-1-1"),
        ("metadata.namespace", "team"),
        ("spec.nodeName", "h7"),
        ("status.podIP", "10.0.0.3"),
        ("metadata.labels['jobset.sigs.k8s.io/replicatedjob-replicas']", "2"),
        ("metadata.labels['jobset.sigs.k8s.io/global-replicas']", "3"),
        ("metadata.annotations['jobset.sigs.k8s.io/job-index']", "1"),
        ("metadata.labels['jobset.sigs.k8s.io/job-global-index']", "2"),
        ("metadata.labels['jobset.sigs.k8s.io/group-replicas']", "3"),
        ("metadata.labels['jobset.sigs.k8s.io/job-group-index']", "2"),
        ("metadata.labels['jobset.sigs.k8s.io/coordinator']", "10.0.0.9"),
        ("metadata.annotations['batch.kubernetes.io/job-completion-index']", "1"),
        ("metadata.labels['job-name']", "x-b-1"),
    ],
)
def test_fields_of_the_pod_are_known(path: str, value: str) -> None:
    env = f'{{name: A, valueFrom: {{fieldRef: {{fieldPath: "{path}"}}}}}}, {{name: B, value: "<$(A)>"}}'
    job = one(
        part("a"),
        part("b", spec=WIDE, outer="replicas: 2,", env=env, command='[echo, "$(B)"]'),
        more="coordinator: {replicatedJob: a},",
    )
    assert said(job, 1, 3, LAVA_PEER_B_3="10.0.0.3:20001", LAVA_PEER_A_0="10.0.0.9:20000") == f"<{value}>"
    assert job.ignored == []


@pytest.mark.parametrize("host", ["x-b-1-0", "x-b-1-0.net", "x-b-1-0.net.team", "x-b-1-0.net.team.svc.cluster.local"])
def test_host_names_of_pods_are_addresses(host: str) -> None:
    """In commands and in variables; what only looks like one is left."""
    job = one(
        part(
            "a",
            env=f'{{name: AT, value: "tcp://{host}:80"}}',
            command=f'[echo, "$(AT)", "{host}:1", x-b-9-0.net, ax-b-1-0, x-b-1-0.log]',
        ),
        part("b", spec=WIDE, outer="replicas: 2,"),
        more="network: {enableDNSHostnames: true, subdomain: net},",
    )
    assert said(job, 0, 0, LAVA_PEER_B_2="10.0.0.2:20002") == "tcp://10.0.0.2:80 10.0.0.2:1 x-b-9-0.net ax-b-1-0 x-b-1-0.log"


def test_a_variable_of_the_users_own_stands() -> None:
    job = one(part("a", env='{name: JOB_INDEX, value: "seven"}', command=ALL))
    assert said(job, 0, 0) == "x a seven 0 0"


def test_names_are_no_words_of_a_shell() -> None:
    text = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: '$(echo made)"`'}
spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {containers: [
  {command: [sh, -c, 'echo "$JOBSET_NAME"']}]}}}}}]}
"""
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    assert said(job, 0, 0) == '$(echo made)"`'


RULE = "failurePolicy: {{maxRestarts: 3, rules: [{{name: r, action: {}, {}}}]}},"
RESTART, FAIL, AGAIN = ("TaskFailed", "RestartJob", -1), ("TaskFailed", "AbortJob", -1), ("TaskFailed", "RestartTask", -1)
GROUP = ("TaskFailed", "RestartGroup", -1)
CODES = "podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]},"


@pytest.mark.parametrize(
    ("more", "spec", "actions", "of_role", "of_job"),
    [
        ("", "backoffLimit: 0,", [FAIL], -1, 0),
        ("", "", [AGAIN, FAIL], 6, 0),
        ("failurePolicy: {maxRestarts: 3},", "backoffLimit: 0,", [RESTART], -1, 3),
        ("failurePolicy: {maxRestarts: 3},", "backoffLimit: 2,", [AGAIN, RESTART], 2, 3),
        (RULE.format("FailJobSet", ""), "backoffLimit: 0,", [FAIL], -1, 3),
        (RULE.format("FailJobSet", "targetReplicatedJobs: [b]"), "backoffLimit: 0,", [RESTART], -1, 3),
        (RULE.format("FailJobSet", "onJobFailureReasons: [PodFailurePolicy]"), f"backoffLimit: 0, {CODES}",
         [("TaskFailed", "AbortJob", 42), RESTART], -1, 3),
        (RULE.format("RestartJob", ""), "backoffLimit: 0,", [GROUP], -1, 3),
        (RULE.format("RestartJob", ""), "backoffLimit: 1,", [AGAIN, GROUP], 1, 3),
    ],
)  # fmt: skip
def test_what_follows_from_a_failure(more: str, spec: str, actions: list[object], of_role: int, of_job: int) -> None:
    """First the pod again, backoffLimit times; then what failurePolicy says, without one the end."""
    job = one(part("a", spec=spec), part("b"), more=more)
    assert (job.roles[0].actions, job.roles[0].backoff, job.policy.backoff) == (actions, of_role, of_job)
    assert job.roles[0].restart == "Never"


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        ("", "all"),
        ("successPolicy: {operator: All},", "all"),
        ("successPolicy: {operator: All, targetReplicatedJobs: [a]},", "a"),
        ("successPolicy: {operator: All, targetReplicatedJobs: [c, a]},", "a,c"),
        ("successPolicy: {operator: Any, targetReplicatedJobs: [b]},", "b"),
        ("successPolicy: {operator: Any, targetReplicatedJobs: [a, c]},", "any(a,c)"),
    ],
)
def test_who_decides(policy: str, rule: str) -> None:
    job = one(part("a"), part("b", spec=WIDE), part("c", outer="replicas: 2,"), more=policy)
    assert job.policy.success == rule
    assert one(part("a"), part("c"), more="successPolicy: {operator: Any},").policy.success == "any"


def test_some_pods_of_a_job_may_decide() -> None:
    policy = 'parallelism: 4, successPolicy: {rules: [{succeededIndexes: "0,2-3"}]},'
    assert one(part("a"), part("b", spec=policy)).policy.success == "a,b[0],b[2-3]"


def test_a_run_limit_is_that_of_all() -> None:
    both = one(part("a", spec="activeDeadlineSeconds: 60,"), part("b", spec="activeDeadlineSeconds: 300,"))
    assert both.options["W"] == "5"
    some = one(part("a", spec="activeDeadlineSeconds: 60,"), part("b"), more="ttlSecondsAfterFinished: 9,")
    assert ("W" in some.options, some.ignored) == (
        False,
        ["activeDeadlineSeconds (some replicated jobs have none)", "ttlSecondsAfterFinished"],
    )


def test_restarts_that_do_not_count() -> None:
    """Of all jobs, or of one; only for the reason that the rule names."""
    of_all = one(part("a", spec="backoffLimit: 0,"), more=RULE.format("RestartJobSetAndIgnoreMaxRestarts", ""))
    assert of_all.roles[0].actions == [("TaskFailed", "RestartJobUncounted", -1)]
    reason = RULE.format("RestartJobSetAndIgnoreMaxRestarts", "onJobFailureReasons: [PodFailurePolicy]")
    by_code = one(part("a", spec=f"backoffLimit: 0, {CODES}"), more=reason)
    assert by_code.roles[0].actions == [("TaskFailed", "RestartJobUncounted", 42), RESTART]
    alone = one(part("a", spec="backoffLimit: 0,"), more=RULE.format("RestartJobAndIgnoreMaxRestarts", ""))
    assert (alone.roles[0].actions, alone.policy.backoff) == ([("TaskFailed", "RestartGroupUncounted", -1)], 3)


@pytest.mark.parametrize(("limit", "actions", "backoff"), [(2, [AGAIN, GROUP], 2), (0, [GROUP], -1)])
def test_each_pod_may_have_a_limit_of_its_own(limit: int, actions: list[object], backoff: int) -> None:
    spec = f"parallelism: 2, completions: 2, backoffLimitPerIndex: {limit}, maxFailedIndexes: 1,"
    job = one(part("a", spec=spec), part("b"), more=RULE.format("RestartJob", ""))
    role = job.roles[0]
    assert (role.actions, role.backoff, role.backoff_each) == (actions, backoff, True)
    assert job.ignored == ["maxFailedIndexes (a job fails with the first of its indexes that does)"]


NEVER = "backoffLimit: 0,"
DISRUPTED = "podFailurePolicy: {rules: [{action: FailJob, onPodConditions: [{type: DisruptionTarget}]}]},"


def test_the_pods_of_one_job_are_a_group() -> None:
    """backoffLimit is that of each job, too."""
    job = one(part("a", spec=WIDE, outer="replicas: 3,"), part("b", spec=WIDE), part("c", outer="replicas: 2,"))
    assert [(role.group, role.backoff) for role in job.roles] == [(2, -1), (0, -1), (1, 6)]


@pytest.mark.parametrize(
    ("spec", "more", "again"),
    [
        (NEVER, "", False),
        (NEVER, "failurePolicy: {maxRestarts: 2},", True),
        (NEVER, "failurePolicy: {rules: [{action: FailJobSet}]},", False),
        (NEVER, "failurePolicy: {rules: [{action: RestartJobSetAndIgnoreMaxRestarts}]},", True),
        ("", "", True),
        (DISRUPTED, "", False),
    ],
)
def test_a_jobset_that_loses_a_host_starts_again_where_it_may(spec: str, more: str, again: bool) -> None:
    """As the set, or as its pods, of which six may fail where backoffLimit says nothing else."""
    assert one(part("a", spec=spec), more=more).options.get("r", False) is again


def on(name: str, status: str, more: str = "") -> str:
    return f"dependsOn: [{{name: {name}, status: {status}}}{more}],"


def test_roles_start_one_after_the_other() -> None:
    ordered = one(part("a"), part("b"), part("c"), more="startupPolicy: {startupPolicyOrder: InOrder},")
    assert [role.after for role in ordered.roles] == [[], ["a"], ["b"]]
    assert [role.after for role in one(part("a"), part("b"), part("c", outer=on("a", "Ready"))).roles] == [[], [], ["a"]]


def test_what_waits_for_an_end_is_a_job_behind_it() -> None:
    """Who is not waited for runs with those that need it, or in the last step."""
    first, last = read(
        part("get"), part("ps"), part("log"), part("w", outer=on("get", "Complete", ", {name: ps, status: Ready}")),
        more="successPolicy: {operator: All, targetReplicatedJobs: [w]}, suspend: true,",
    )  # fmt: skip
    assert ([role.name for role in first.roles], [role.name for role in last.roles]) == (["get"], ["ps", "log", "w"])
    assert (first.policy.success, last.policy.success, last.roles[2].after) == ("all", "w", ["ps"])
    assert (first.options, last.options) == (
        {"J": "x-get", "P": "team", "H": True, "r": True},
        {"J": "x", "P": "team", "ti": True, "r": True},
    )
    assert last.before == [("done", first)]
    assert 'dependency: done("x-get")' in shown(last)


def test_a_step_without_gpus_shares_none() -> None:
    share = part("w", outer=on("get", "Complete")).replace("name: c,", "name: c, resources: {limits: {nvidia.com/gpumem: 5}},")
    first, last = read(part("get"), share)
    assert (first.options.get("gpu"), last.options.get("gpu")) == (None, "num=1:gmem=5MB:j_exclusive=no")


@pytest.mark.parametrize(
    ("parts", "more", "why"),
    [
        ([], "", ".replicatedJobs: there is none"),
        ([part("a"), part("a")], "", ".replicatedJobs: a is there twice"),
        ([part("A")], "", ".replicatedJobs[0].name: 'A' is no name of a replicated job"),
        ([part("a", outer="replicas: 0,")], "", ".replicatedJobs[0].replicas: 0 pods are no job"),
        ([part("a", outer="replicas: 2000000000,")], "", ".replicatedJobs: 2000000000 pods: a job has at most 10000 tasks"),
        ([part("a", spec="parallelism: 0,")], "", ".replicatedJobs[0].template.spec.parallelism: 0 pods are no job"),
        ([part("a", spec="backoffLimitPerIndex: -1,")], "", ".replicatedJobs[0].template.spec.backoffLimitPerIndex: -1 is less "),
        ([part("a", spec="completions: 3,")], "", ".replicatedJobs[0].template.spec.completions: 3, 1 at a time: the tasks of"),
        ([part("a", spec="completionMode: X,")], "", ".replicatedJobs[0].template.spec.completionMode: X: it is NonIndexed or"),
        ([part("a")], "failurePolicy: {restartStrategy: X},", ".failurePolicy.restartStrategy: X: it is one of Recreate, "),
        ([part("a")], RULE.format("Wait", ""), ".failurePolicy.rules[0].action: Wait: it is one of FailJobSet, RestartJobSet, "),
        ([part("a")], RULE.format("FailJobSet", "targetReplicatedJobs: [z]"), ".failurePolicy.rules[0].targetReplicatedJobs: z:"),
        ([part("a")], RULE.format("FailJobSet", "onJobFailureReasons: [z]"), ".failurePolicy.rules[0].onJobFailureReasons: z: i"),
        ([part("a")], RULE.format("FailJobSet", "onJobFailureMessagePatterns: [z]"), ".failurePolicy.rules[0].onJobFailureMessa"),
        ([part("a")], "successPolicy: {operator: Some},", ".successPolicy.operator: Some: it is All or Any"),
        ([part("a")], "successPolicy: {targetReplicatedJobs: [z]},", ".successPolicy.targetReplicatedJobs: z: there is no such"),
        ([part("a", spec="successPolicy: {rules: [{succeededIndexes: 1}]},")], "",
         ".replicatedJobs[0].template.spec.successPolicy.rules[0].succeededIndexes: 1: it is an index below 1"),
        ([part("a", spec="successPolicy: {rules: [{succeededIndexes: 0-0000000009999999999}]},")], "",
         ".replicatedJobs[0].template.spec.successPolicy.rules[0].succeededIndexes: 0-0000000009999999999: it is an i"),
        ([part("a")], "coordinator: {replicatedJob: z},", ".coordinator.replicatedJob: z: there is no such replicated job"),
        ([part("a")], "coordinator: {replicatedJob: a, podIndex: 1},", ".coordinator.podIndex: 1: a has 1"),
        ([part("a")], "startupPolicy: {startupPolicyOrder: X},", ".startupPolicy.startupPolicyOrder: X: it is AnyOrder or InOrd"),
        ([part("a", outer=on("a", "Ready"))], "", ".replicatedJobs[0].dependsOn[0].name: a: it is one of the replicated jobs be"),
        ([part("a"), part("b", outer=on("a", "Gone"))], "", ".replicatedJobs[1].dependsOn[0].status: Gone: it is Ready or Compl"),
        ([part("a"), part("b", outer=on("a", "Ready")), part("c", outer=on("a", "Ready", ", {name: b, status: Complete}"))],
         "", ".replicatedJobs[0].dependsOn: a would have to run beside c and beside what c waits for"),
        ([part("a"), part("b", outer=on("a", "Complete"))], "successPolicy: {targetReplicatedJobs: [a]},",
         ".successPolicy: the job is done when its last step is, and a come before it"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_by_its_name(parts: list[str], more: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(*parts, more=more)
    assert failed.value.text.removeprefix("job.yaml.spec").startswith(why)

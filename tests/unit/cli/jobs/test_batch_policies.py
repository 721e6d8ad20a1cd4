"""What ends a Job of Kubernetes before all of its pods have ended: exit codes, indexes that failed, indexes that are enough."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of, shown
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
INDEXED = "completions: 6, completionMode: Indexed, backoffLimitPerIndex: 1,"
LOST = "onPodConditions: [{type: DisruptionTarget}]"


def read(more: str = "", rules: str = "", restart: str = "Never", pod: str = "") -> JobFile:
    if rules:
        more += f"podFailurePolicy: {{rules: [{rules}]}},"
    pod = f"template: {{spec: {{restartPolicy: {restart}, {pod} containers: [{{name: c, command: [run]}}]}}}}"
    text = f"apiVersion: batch/v1\nkind: Job\nmetadata: {{name: x}}\nspec: {{{more} {pod}}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


def codes(operator: str, *values: int, action: str = "FailJob", more: str = "") -> str:
    return f"{{action: {action}, onExitCodes: {{operator: {operator}, values: {list(values)}, {more}}}}}"


def done(job: JobFile) -> list[str]:
    return [action + (f"({code})" if code >= 0 else "") for _, action, code in job.policy.actions]


@pytest.mark.parametrize(
    ("rules", "what"),
    [
        (codes("In", 3), ["AbortArray(3)", "RestartJob"]),
        (codes("In", 3, action="FailIndex"), ["AbortJob(3)", "RestartJob"]),
        (codes("In", 3, 143, action="Ignore"), ["RestartJobUncounted(3)", "RestartJobUncounted(143)", "RestartJob"]),
        (codes("In", 3, action="Count"), ["RestartJob"]),
        (codes("NotIn", 3), ["RestartJob(3)", "AbortArray"]),
        (f"{codes('In', 4, action='Ignore')}, {codes('NotIn', 3)}", ["RestartJob(3)", "RestartJobUncounted(4)", "AbortArray"]),
        (f"{codes('NotIn', 3)}, {codes('In', 4, 3, action='Ignore')}", ["RestartJobUncounted(3)", "AbortArray"]),
        (codes("In", 3, more="containerName: c"), ["AbortArray(3)", "RestartJob"]),
    ],
)
def test_the_first_rule_that_fits_an_exit_code_holds(rules: str, what: list[str]) -> None:
    job = read(INDEXED, rules)
    assert (done(job), job.ignored) == (what, [])


def test_a_job_of_one_pod_fails_alone() -> None:
    assert done(read(rules=codes("In", 3))) == ["AbortJob(3)", "RestartJob"]


def test_a_container_that_does_not_run_has_no_exit_codes() -> None:
    job = read(rules=codes("In", 3, more="containerName: proxy"))
    assert (done(job), job.ignored) == (["RestartJob"], ["podFailurePolicy.rules[0] (container proxy does not run)"])


@pytest.mark.parametrize(
    ("more", "action", "again", "ignored"),
    [
        ("backoffLimit: 0,", "Ignore", True, []),
        ("", "FailJob", False, []),
        (INDEXED, "FailIndex", False, []),
        (INDEXED, "FailJob", False, ["podFailurePolicy: FailJob (of a lost host: its own index fails)"]),
        ("", "Count", True, ["podFailurePolicy: Count (of a lost host: it counts for nothing)"]),
    ],
)
def test_a_lost_host(more: str, action: str, again: bool, ignored: list[str]) -> None:
    """A rule says whether a pod that loses its host is replaced."""
    job = read(more, f"{{action: {action}, {LOST}}}")
    assert ("r" in job.options, job.ignored) == (again, ignored)


def test_a_condition_that_no_pod_has_here_is_named() -> None:
    job = read(rules="{action: FailJob, onPodConditions: [{type: ConfigIssue}]}")
    assert job.ignored == ["podFailurePolicy.rules[0] (ConfigIssue)"]


def test_failures_of_all_pods_count_together() -> None:
    """But for those of an index that has a limit of its own."""
    job = read("completions: 6, backoffLimit: 2,")
    assert (job.policy.backoff, job.policy.array_backoff, job.policy.array_failures) == (2, True, -1)
    of_each = read(f"{INDEXED} maxFailedIndexes: 3, backoffLimit: 9,")
    assert (of_each.policy.backoff, of_each.policy.array_backoff, of_each.policy.array_failures) == (1, False, 3)
    assert of_each.ignored == ["backoffLimit (backoffLimitPerIndex holds)"]
    assert read().policy.array_backoff is False


def test_enough_indexes() -> None:
    """Any of the rules; elements count from 1."""
    rules = '{succeededIndexes: "0,2-3,5"}, {succeededIndexes: "1-4", succeededCount: 2}, {succeededCount: 3}'
    job = read(f"{INDEXED} successPolicy: {{rules: [{rules}]}},")
    assert job.policy.array_success == ["[1,3-4,6]", "2[2-5]", "3"]
    (again,) = jobs_of(read_yaml("again.yaml", shown(job)), "again.yaml")
    assert again.policy == job.policy


def test_the_deadline_of_a_pod_is_that_of_each_element() -> None:
    assert read(INDEXED, pod="activeDeadlineSeconds: 120,").options["W"] == "2"
    assert read("activeDeadlineSeconds: 60,", pod="activeDeadlineSeconds: 120,").options["W"] == "1"


@pytest.mark.parametrize(
    ("more", "rules", "restart", "why"),
    [
        ("", codes("In", 3), "OnFailure", "podFailurePolicy: it needs restartPolicy: Never"),
        ("", codes("In", 3, action="FailIndex"), "Never", "podFailurePolicy: FailIndex needs backoffLimitPerIndex"),
        ("", codes("In", 3, action="Stop"), "Never", "rules[0].action: Stop: it is one of FailJob, FailIndex, Ignore, Count"),
        ("", codes("Is", 3), "Never", "rules[0].onExitCodes.operator: Is: it is In or NotIn"),
        ("", "", "Always", "template.spec.restartPolicy: Always: it is Never or OnFailure"),
        ("maxFailedIndexes: 1,", "", "Never", "maxFailedIndexes: it needs backoffLimitPerIndex"),
        ("podReplacementPolicy: Now,", "", "Never", "podReplacementPolicy: Now: it is Failed or TerminatingOrFailed"),
        ("successPolicy: {rules: [{succeededCount: 1}]},", "", "Never", "successPolicy: it needs completionMode: Indexed"),
        (
            f"{INDEXED} successPolicy: {{rules: [{{}}]}},",
            "",
            "Never",
            "rules[0]: it has neither succeededIndexes nor succeededCount",
        ),
        (
            f'{INDEXED} successPolicy: {{rules: [{{succeededIndexes: "1-2", succeededCount: 3}}]}},',
            *("", "Never", "rules[0].succeededCount: 3 is not between 1 and 2, the indexes that could succeed"),
        ),
        (
            f'{INDEXED} successPolicy: {{rules: [{{succeededIndexes: "6"}}]}},',
            *("", "Never", "rules[0].succeededIndexes: 6: it is an index below 6, or two with - between them"),
        ),
    ],
)
def test_what_kubernetes_refuses_is_refused(more: str, rules: str, restart: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(more, rules, restart)
    assert failed.value.text.startswith("job.yaml.spec.")
    assert failed.value.text.endswith(why)


def test_more_indexes_than_fit_in_memory_are_refused() -> None:
    more = 'completions: 2000000000, completionMode: Indexed, successPolicy: {rules: [{succeededIndexes: "0-1999999999"}]},'
    with pytest.raises(Fail, match=r"rules\[0\]\.succeededIndexes: more than 1000000 indexes"):
        read(more)


def test_more_pods_that_know_each_other_than_a_job_has_tasks_are_refused() -> None:
    with pytest.raises(Fail, match=r"2000000000 pods that know each other are one job, which has at most 10000"):
        read("completions: 2000000000, parallelism: 2000000000, completionMode: Indexed,", pod="subdomain: x,")

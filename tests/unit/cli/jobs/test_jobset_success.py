"""Which jobs and pods of a JobSet are enough for it, and what it means to start one of its jobs again."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from tests.unit.cli.jobs.test_jobset import RESTART, RULE, WIDE, one, part, read

pytest.importorskip("yaml")
SET = "successPolicy: {{operator: {}, targetReplicatedJobs: [{}]}},"


def enough(*rules: str, pods: int = 4) -> str:
    """The fields of a job of so many pods."""
    return f"parallelism: {pods}, successPolicy: {{rules: [{', '.join(f'{{{rule}}}' for rule in rules)}]}},"


@pytest.mark.parametrize(
    ("spec", "jobs", "more", "rule"),
    [
        (WIDE, 3, SET.format("Any", "b"), "b[0-1] | b[2-3] | b[4-5]"),
        (WIDE, 1, "successPolicy: {operator: Any},", "a[0] | a[1] | b"),
        (enough("succeededCount: 2"), 1, "", "a & any(2,b)"),
        (enough("succeededCount: 1", pods=2), 2, SET.format("All", "b"), "any(1,b[0-1]) & any(1,b[2-3])"),
        (enough("succeededCount: 1", pods=2), 2, SET.format("Any", "b"), "any(1,b[0-1]) | any(1,b[2-3])"),
        (enough('succeededIndexes: "0"', "succeededCount: 3"), 1, SET.format("All", "b"), "b[0] | any(3,b)"),
        (enough('succeededIndexes: "1-3", succeededCount: 2'), 1, SET.format("All", "b"), "any(2,b[1-3])"),
        (enough('succeededIndexes: "0"', 'succeededIndexes: "1"'), 1, SET.format("All", "a, b"), "a,b[0] | a,b[1]"),
    ],
)
def test_jobs_of_several_pods_that_are_enough(spec: str, jobs: int, more: str, rule: str) -> None:
    job = one(part("a", outer="replicas: 2,"), part("b", spec=spec, outer=f"replicas: {jobs},"), more=more)
    assert job.policy.success == rule


def test_the_last_step_alone_may_have_alternatives() -> None:
    after = "dependsOn: [{name: a, status: Complete}],"
    _, last = read(part("a"), part("b", spec=WIDE, outer=f"replicas: 2, {after}"), more=SET.format("Any", "b"))
    assert last.policy.success == "b[0-1] | b[2-3]"
    with pytest.raises(Fail, match="the job is done when its last step is, and a come before it"):
        read(part("a"), part("b", outer=after), more=SET.format("Any", "a, b"))


def test_too_many_alternatives_are_refused() -> None:
    with pytest.raises(Fail, match=r"operator: 80 jobs and rules are alternatives of which any is enough: at most 64"):
        one(part("a", spec=WIDE, outer="replicas: 80,"), more=SET.format("Any", "a"))


def test_a_restart_in_place_is_a_new_attempt() -> None:
    job = one(part("a", spec="backoffLimit: 0,"), more="failurePolicy: {maxRestarts: 2, restartStrategy: InPlaceRestart},")
    assert job.roles[0].actions == [RESTART]
    assert job.ignored == ["failurePolicy.restartStrategy (all start again as a new attempt)"]


def test_a_rule_of_reasons_that_do_not_occur_here_is_named() -> None:
    job = one(part("a"), more=RULE.format("FailJobSet", "onJobFailureReasons: [DeadlineExceeded]"))
    assert job.ignored == ["failurePolicy.rules[0] (of DeadlineExceeded)"]
    both = one(part("a"), more=RULE.format("FailJobSet", "onJobFailureReasons: [DeadlineExceeded, PodFailurePolicy]"))
    assert both.ignored == []


def test_rules_of_which_too_many_pairs_would_do_are_refused_before_they_are_made() -> None:
    """Six jobs of 30 rules each are 729 million alternatives."""
    spec = enough(*[f"succeededCount: {number % 4 + 1}" for number in range(30)])
    with pytest.raises(Fail) as refused:
        one(*(part(name, spec=spec) for name in "abcdef"))
    assert "729000000 jobs and rules are alternatives of which any is enough: at most 64" in refused.value.text

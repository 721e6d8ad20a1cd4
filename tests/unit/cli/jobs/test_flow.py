"""JobFlow of Volcano: a job for each flow, made of its template, and what it waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import condition, jobs_of, shown
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
FLOW = "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f, namespace: team}\nspec: {MORE flows: [FLOWS]}\n"
TEMPLATE = """
---
apiVersion: flow.volcano.sh/v1alpha1
kind: JobTemplate
metadata: {name: NAME}
spec: {minAvailable: 2, tasks: [{name: t, replicas: 2, template: {spec: {containers: [{command: [run, NAME]}]}}}]}
"""


def read(flows: str, more: str = "") -> list[JobFile]:
    templates = "".join(TEMPLATE.replace("NAME", name) for name in "abc")
    return jobs_of(read_yaml("j", FLOW.replace("MORE", more).replace("FLOWS", flows) + templates), "j")


def waits(job: JobFile) -> list[str]:
    return [f"{kind}({one.options['J']})" for kind, one in job.before]


def test_each_flow_is_a_job_of_its_template() -> None:
    """Whatever their order in the file."""
    flows = "{name: a}, {name: c, dependsOn: {targets: [a, b]}}, {name: b, dependsOn: {targets: [a]}}"
    a, c, b = read(flows, "jobRetainPolicy: retain,")
    assert [job.options for job in (a, b, c)] == [
        {"J": "f-a", "P": "team", "r": True},
        {"J": "f-b", "P": "team", "r": True, "ti": True},
        {"J": "f-c", "P": "team", "r": True, "ti": True},
    ]
    assert [waits(job) for job in (a, b, c)] == [[], ["done(f-a)"], ["done(f-a)", "done(f-b)"]]
    assert [job.roles[0].command for job in (a, b, c)] == ["run a", "run b", "run c"]
    assert 'dependency: done("f-a") && done("f-b")' in shown(c)
    assert a.ignored == []


@pytest.mark.parametrize(
    ("phase", "kind"), [("", "done"), ("phase: Completed", "done"), ("phase: Failed", "exit"), ("phase: Running", "started")]
)
def test_a_flow_may_wait_for_another_end_or_a_start(phase: str, kind: str) -> None:
    jobs = read(f"{{name: a}}, {{name: b, dependsOn: {{targetsWithStatus: [{{name: a, {phase}}}]}}}}")
    assert waits(jobs[1]) == [f"{kind}(f-a)"]


@pytest.mark.parametrize(("phase", "sign"), [("Completed", ">="), ("Failed", "<")])
def test_a_flow_of_tasks_that_are_apart_has_ended_well_with_some_of_them(phase: str, sign: str) -> None:
    template = TEMPLATE.replace("NAME", "a").replace("minAvailable: 2", "minAvailable: 3").replace("replicas: 2", "replicas: 9")
    flows = f"{{name: a}}, {{name: b, dependsOn: {{targetsWithStatus: [{{name: a, phase: {phase}}}]}}}}"
    text = FLOW.replace("MORE", "").replace("FLOWS", flows) + template + TEMPLATE.replace("NAME", "b")
    first, last = jobs_of(read_yaml("j", text), "j")
    assert first.options["J"] == "f-a[1-9]"
    assert condition(last.options, last, lambda job: 12) == f"numended(12,*) && numdone(12,{sign} 3)"
    assert f'dependency: numended("f-a",*) && numdone("f-a",{sign} 3)' in shown(last)


def test_the_example_is_four_jobs() -> None:
    path = Path(__file__).parents[4] / "examples/roles/jobflow.yaml"
    jobs = jobs_of(read_yaml("j", path.read_text()), "j")
    assert [waits(job) for job in jobs] == [
        [],
        ["done(flow-first)"],
        ["done(flow-first)"],
        ["done(flow-left)", "done(flow-right)"],
    ]


@pytest.mark.parametrize(
    ("flows", "why"),
    [
        ("", "flows: there is none"),
        ("{name: z}", "flows[0].name: z: give its JobTemplate as a document too"),
        ("{name: a}, {name: a}", "flows[1].name: a is there twice"),
        ("{name: a, dependsOn: {targets: [b]}}", "flows[0].dependsOn.targets: b: there is no such flow"),
        ("{name: a, dependsOn: {targets: [a]}}", "flows: a wait for each other"),
        ("{name: a, dependsOn: {probe: {tcpSocketList: [{port: 1}]}}}", "flows[0].dependsOn.probe: lava waits for ends"),
        (
            "{name: a}, {name: b, dependsOn: {targetsWithStatus: [{name: a, phase: X}]}}",
            "flows[1].dependsOn.targetsWithStatus[0].phase: X: it is one of Completed, Failed",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_by_its_name(flows: str, why: str) -> None:
    with pytest.raises(Fail) as failed:
        read(flows)
    assert failed.value.text.removeprefix("j: document 1.spec.").startswith(why)


def test_what_is_wrong_in_a_template_names_it() -> None:
    text = FLOW.replace("MORE", "").replace("FLOWS", "{name: a}") + TEMPLATE.replace("NAME", "a")
    with pytest.raises(Fail, match=r"JobTemplate a\.spec\.minSuccess: 9 is not between 1 and 2"):
        jobs_of(read_yaml("j", text.replace("minAvailable: 2", "minSuccess: 9")), "j")


def test_a_template_alone_is_no_job() -> None:
    with pytest.raises(Fail, match="there is no job in it"):
        jobs_of(read_yaml("j", TEMPLATE), "j")


def test_a_cronjob_says_what_to_do_instead() -> None:
    with pytest.raises(Fail, match="j: kind CronJob: lava repeats no jobs: let cron run `lava run`"):
        jobs_of(read_yaml("j", "apiVersion: batch/v1\nkind: CronJob\nspec: {}"), "j")
    with pytest.raises(Fail, match="j: kind RayCronJob: lava repeats no jobs: let cron run `lava run` of a RayJob"):
        jobs_of(read_yaml("j", "apiVersion: ray.io/v1\nkind: RayCronJob\nspec: {}"), "j")


def test_a_flow_may_change_its_template() -> None:
    """As a strategic merge: rows with names by their names."""
    patch = "patch: {spec: {queue: fast, minAvailable: 3, tasks: [{name: t, replicas: 3}]}}"
    a, b = read(f"{{name: a, {patch}}}, {{name: b, dependsOn: {{targets: [a]}}}}")
    assert (a.options["q"], a.roles[0].count, a.roles[0].command, a.ignored) == ("fast", 3, "run a", [])
    assert ("q" in b.options, b.roles[0].count) == (False, 2)

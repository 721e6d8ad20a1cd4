"""Manifests that no operator would take: one line each that names the field, and nothing that a terminal would obey."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.client.texts import one_line
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
AT = "job.yaml.spec.template.spec.containers[0]"


def why(container: str, spec: str = "", kind: str = "batch/v1\nkind: Job") -> str:
    text = f"apiVersion: {kind}\nmetadata: {{name: x}}\nspec: {{{spec} template: {{spec: {{containers: [{{{container}}}]}}}}}}\n"
    with pytest.raises(Fail) as failed:
        jobs_of(read_yaml("job.yaml", text), "job.yaml")
    assert "\n" not in failed.value.text
    return failed.value.text


OWN = "which lava does not know: give command"


@pytest.mark.parametrize(
    ("container", "told"),
    [
        ("name: c", f"job.yaml.spec: role pod: there is no command, and its image's own program is meant, {OWN}"),
        (
            "args: [--epochs, '3']",
            f"job.yaml.spec: role pod: there is no command, and args are those of its image's own program, {OWN}",
        ),
        ('command: ["a\\0b"]', f"{AT}.command: a word has no NUL characters"),
        ('command: [a], env: [{name: A, value: "\\0"}]', f"{AT}.env[0].value: a variable has no NUL characters"),
        (
            'command: [a], env: [{name: "a;rm", valueFrom: {fieldRef: {fieldPath: metadata.name}}}]',
            f"{AT}.env[0].name: a;rm: what is known when the task starts has a name of letters, digits and _",
        ),
        (
            "command: [a], resources: {limits: {nvidia.com/gpu: -1}}",
            f"{AT}.resources.limits.nvidia.com/gpu: -1 is less than none",
        ),
        (
            "command: [a], resources: {requests: {cpu: 99999999999}}",
            f"{AT}.resources.requests.cpu: 99999999999: a task has at most 100000 slots",
        ),
    ],
)
def test_a_container_that_cannot_run(container: str, told: str) -> None:
    assert why(container) == told


def test_hosts_that_are_asked_for_again_and_again() -> None:
    """Elastic Horovod does so, by a program of the operator."""
    script = "/etc/mpi/discover_hosts.sh"
    roles = f"Launcher: {{template: {{spec: {{containers: [{{command: [horovodrun, --host-discovery-script, {script}]}}]}}}}}}"
    told = why("command: [a]", f"mpiReplicaSpecs: {{{roles}}},", "kubeflow.org/v1\nkind: MPIJob")
    assert told == (
        f"job.yaml.spec.mpiReplicaSpecs: launcher: {script}: the workers of a job do not change: give /etc/mpi/hostfile"
    )


@pytest.mark.parametrize("seconds", [0, -5])
def test_a_job_has_time_to_run(seconds: int) -> None:
    told = why("command: [a]", f"activeDeadlineSeconds: {seconds},")
    assert told == f"job.yaml.spec.activeDeadlineSeconds: {seconds} seconds end the job before it runs"


def test_an_image_without_arguments_may_run_a_program_of_the_host() -> None:
    """As many images have no program of their own: args are the whole command then."""
    text = "apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {containers: [{args: [sh, -c, a]}]}}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    assert (job.roles[0].command, job.ignored) == ("sh -c a", ["the image's own entry point"])


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain äé", "plain äé"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\nb\tc\x7f", "a\\nb\\tc\\x7f"),
        ("\u202e", "\\u202e"),
    ],
)
def test_a_line_has_nothing_that_a_terminal_obeys(given: str, shown: str) -> None:
    assert one_line(given) == shown

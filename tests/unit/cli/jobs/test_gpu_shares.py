"""Manifests that ask for a part of a GPU: its memory is reserved, and others may have the rest."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")


def read(*limits: str, more: str = "") -> JobFile:
    rows = ", ".join(
        f"{{name: t{at}, template: {{spec: {{containers: [{{command: [a], resources: {{limits: {{{one}}}}}}}]}}}}}}"
        for at, one in enumerate(limits)
    )
    text = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {{{more} tasks: [{rows}]}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    return job


@pytest.mark.parametrize(
    ("limits", "gpus", "gpu"),
    [
        ("volcano.sh/vgpu-number: 2, volcano.sh/vgpu-memory: 3000", 2, "num=1:gmem=3000MB:j_exclusive=no"),
        ("volcano.sh/gpu-memory: 1024", 1, "num=1:gmem=1024MB:j_exclusive=no"),
        ("nvidia.com/gpu: 1, nvidia.com/gpumem: 500", 1, "num=1:gmem=500MB:j_exclusive=no"),
        ("volcano.sh/vgpu-number: 1", 1, None),
        ("nvidia.com/gpu: 3", 3, None),
        ("cpu: 1", 0, None),
    ],
)
def test_a_part_of_a_gpu(limits: str, gpus: int, gpu: str | None) -> None:
    job = read(limits)
    assert (job.roles[0].gpus, job.options.get("gpu"), job.ignored) == (gpus, gpu, [])


def test_the_roles_of_a_job_share_alike() -> None:
    """-gpu is of the whole job; roles without GPUs have no part in it."""
    assert read("volcano.sh/vgpu-memory: 5", "cpu: 1", "volcano.sh/vgpu-memory: 5").options["gpu"]
    with pytest.raises(Fail, match=r"job\.yaml\.spec: t0, t1: roles of one job share GPUs alike, or none does"):
        read("volcano.sh/vgpu-memory: 5", "nvidia.com/gpu: 1")


@pytest.mark.parametrize(("text", "minutes"), [("1h30m", "90"), ("90s", "2"), ("2h", "120"), ("1m0.5s", "2")])
def test_how_long_it_is_expected_to_run(text: str, minutes: str) -> None:
    assert read("cpu: 1", more=f"runningEstimate: {text},").options["We"] == minutes


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(Fail, match=r"job\.yaml\.spec\.runningEstimate: 3 days is no time such as 1h30m"):
        read("cpu: 1", more="runningEstimate: 3 days,")

"""Manifests as kubectl and Kueue have them: lists, the versions of a JobSet, and who holds or queues a job from outside."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.jobs.manifests import unfolded
from cli.jobs.model import JobFile
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import MOST_DOCUMENTS, read_yaml

pytest.importorskip("yaml")
JOB = """
- apiVersion: batch/v1
  kind: Job
  metadata: {{name: {name}, {meta}}}
  spec: {{{spec} template: {{spec: {{restartPolicy: Never, containers: [{{name: c, command: [a]}}]}}}}}}
"""


def listed(*rows: str) -> list[JobFile]:
    text = f"apiVersion: v1\nkind: List\nmetadata: {{resourceVersion: ''}}\nitems:\n{''.join(rows)}"
    return jobs_of(unfolded(read_yaml("all.yaml", text), "all.yaml"), "all.yaml")


def job(name: str = "x", meta: str = "", spec: str = "") -> str:
    return JOB.format(name=name, meta=meta, spec=spec)


def test_a_list_is_its_items() -> None:
    assert [one.options["J"] for one in listed(job("a"), "- {apiVersion: v1, kind: Service}\n", job("b"))] == ["a", "b"]
    inner = "- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Service}]}\n"
    assert listed(job("a"), inner)[0].ignored == ["Service"]


def test_an_item_that_is_wrong_is_named_and_nothing_is_read() -> None:
    with pytest.raises(Fail) as failed:
        listed(job("a"), job("b", spec="completions: x,"))
    assert failed.value.text == "all.yaml: document 2.spec.completions: x is no whole number"
    with pytest.raises(Fail, match=r"all\.yaml: List\.items: this is no list"):
        unfolded([{"kind": "List", "items": {"a": 1}}], "all.yaml")


def test_a_file_has_room_for_many_documents() -> None:
    assert len(read_yaml("all.yaml", "---\n{a: 1}\n" * MOST_DOCUMENTS)) == MOST_DOCUMENTS
    with pytest.raises(Fail, match="more than 1000 documents"):
        read_yaml("all.yaml", "---\n{a: 1}\n" * (MOST_DOCUMENTS + 1))


def test_what_kueue_admits_is_not_held() -> None:
    """It is created suspended, and Kueue lets it go; what no queue of Kueue admits is held."""
    (kueue,) = listed(job(meta="labels: {kueue.x-k8s.io/queue-name: night}", spec="suspend: true,"))
    assert (kueue.options["q"], "H" in kueue.options) == ("night", False)
    (held,) = listed(job(meta="labels: {team: a}", spec="suspend: true,"))
    assert held.options["H"] is True


def test_volcano_names_the_queue_of_other_kinds_by_an_annotation() -> None:
    (one,) = listed(job(meta="annotations: {scheduling.volcano.sh/queue-name: night}"))
    assert (one.options["q"], one.ignored) == ("night", [])
    (one,) = listed(job(meta="annotations: {scheduling.volcano.sh/queue-name: night, other: a}"))
    assert one.ignored == ["metadata.annotations"]


@pytest.mark.parametrize("version", ["v1", "v1alpha2"])
def test_a_jobset_of_either_version(version: str) -> None:
    text = (
        f"apiVersion: jobset.x-k8s.io/{version}\nkind: JobSet\nmetadata: {{name: x}}\n"
        "spec: {replicatedJobs: [{name: a, template: {spec: {template: {spec: {containers: [{command: [a]}]}}}}}]}\n"
    )
    (one,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    assert [role.name for role in one.roles] == ["a"]

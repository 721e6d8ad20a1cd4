"""Manifests that keep a job near together: levels of the network are types of compute units."""

from __future__ import annotations

import pytest

from cli.client.context import Fail
from cli.jobs.run import jobs_of
from cli.submit.yaml_text import read_yaml

pytest.importorskip("yaml")
POD = "spec: {containers: [{command: [run]}]}"


@pytest.mark.parametrize(
    ("annotations", "cu"),
    [
        ("kueue.x-k8s.io/podset-required-topology: example.com/topology-rack", ["cu[type=topology_rack:maxcus=1]"]),
        ("kueue.x-k8s.io/podset-preferred-topology: block", ["cu[type=block]"]),
        ("a: b", None),
    ],
)
def test_kueue_names_a_level_by_its_label(annotations: str, cu: list[str] | None) -> None:
    text = f"apiVersion: batch/v1\nkind: Job\nspec: {{template: {{metadata: {{annotations: {{{annotations}}}}}, {POD}}}}}\n"
    (job,) = jobs_of(read_yaml("job.yaml", text), "job.yaml")
    assert job.options.get("R") == cu
    assert job.ignored == ([] if cu else ["template.metadata.annotations"])


@pytest.mark.parametrize(
    ("topology", "cu", "ignored"),
    [
        ("mode: hard, highestTierName: leaf", ["cu[type=leaf:maxcus=1]"], []),
        ("mode: soft, highestTierName: leaf", ["cu[type=leaf]"], []),
        ("mode: hard, highestTierAllowed: 2", ["cu[type=2:maxcus=1]"], []),
        ("mode: soft, highestTierAllowed: 1, highestTierName: leaf", ["cu[type=leaf]"], []),
        ("mode: soft", None, []),
    ],
)
def test_volcano_names_a_tier(topology: str, cu: list[str] | None, ignored: list[str]) -> None:
    spec = f"{{networkTopology: {{{topology}}}, tasks: [{{name: a, template: {{{POD}}}}}]}}"
    (job,) = jobs_of(read_yaml("job.yaml", f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {spec}\n"), "job.yaml")
    assert (job.options.get("R"), job.ignored) == (cu, ignored)


@pytest.mark.parametrize(
    ("topology", "why"),
    [("mode: firm", "mode: firm: it is hard or soft"), ("highestTierAllowed: 0", "highestTierAllowed: 0: tiers")],
)
def test_what_is_no_tier_is_refused(topology: str, why: str) -> None:
    with pytest.raises(Fail, match=rf"networkTopology\.{why}"):
        test_volcano_names_a_tier(topology, None, [])

"""LSF_LOCAL_RESOURCES, in the forms that LSF has."""

from __future__ import annotations

import pytest

from config.values.local_resources import read_local


@pytest.mark.parametrize(
    ("text", "kind", "resources"),
    [
        ("", "", {}),
        ("[resource big]", "", {"big": ""}),
        ("[resourcemap 4*licences][resource  big ]  [type LINUX86]", "LINUX86", {"licences": "4", "big": ""}),
        ("[resourcemap rack 7*place]", "", {"place": "rack 7"}),
        ("[resource a] [resourcemap 2.5*a]", "", {"a": "2.5"}),
    ],
)
def test_what_a_host_says_of_itself(text: str, kind: str, resources: dict[str, str]) -> None:
    assert read_local(text) == (kind, resources)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[resource]", "[resource] is not [resource NAME] or [resourcemap VALUE*NAME]"),
        ("[a" + " " * 3000, "[a is not [resource NAME], [resourcemap VALUE*NAME] or [type NAME]"),
        ("[resource big", "[resource big is not [resource NAME], [resourcemap VALUE*NAME] or [type NAME]"),
        ("big", "big is not [resource NAME], [resourcemap VALUE*NAME] or [type NAME]"),
        ("[resource 4*big]", "[resource 4*big] is not [resource NAME] or [resourcemap VALUE*NAME]"),
        ("[resourcemap big]", "[resourcemap big] is not [resource NAME] or [resourcemap VALUE*NAME]"),
        ("[resource b-g]", "[resource b-g] is not [resource NAME] or [resourcemap VALUE*NAME]"),
        ("[model big]", "[model …]: it is resource, resourcemap or type"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError) as wrong:
        read_local(text)
    assert str(wrong.value) == why

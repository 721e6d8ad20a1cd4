"""What the audit file says of a change of the configuration, however long the values are."""

from __future__ import annotations

from typing import Any

import pytest

from config.model.cluster import Limit
from lavad.configure.difference import LONGEST, differences
from lavad.core.site.conf import Conf, Params

FIRST, SECOND = Limit(name="l", jobs=1), Limit(name="l", jobs=2)
MANY = tuple(f"user{number}" for number in range(100))


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ({"user_groups": (("ug", MANY),)}, {"user_groups": (("ug", (*MANY, "eve")),)}, ("user_groups[ug]", "", "'eve')")),
        ({"user_groups": (("a", ("x",)),)}, {"user_groups": (("a", ("x",)), ("b", ("y",)))}, ("user_groups[b]", "", "('y',)")),
        ({"admins": MANY}, {"admins": (*MANY, "eve")}, ("admins", "", "'eve')")),
        ({"limits": (FIRST, SECOND)}, {"limits": (Limit(name="l", jobs=5), SECOND)}, ("limits[l].jobs", "1", "5")),
    ],
)  # fmt: skip
def test_every_change_is_told(old: dict[str, Any], new: dict[str, Any], wanted: tuple[str, str, str]) -> None:
    [(name, before, after)] = differences(Conf(**old), Conf(**new))
    assert name == wanted[0]
    assert wanted[1] in before
    assert wanted[2] in after
    assert max(len(before), len(after)) <= LONGEST + 6
    assert before != after


def test_no_change_is_none() -> None:
    conf = Conf(admins=MANY, user_groups=(("ug", MANY),), params=Params(clean_period=10))
    assert list(differences(conf, conf)) == []

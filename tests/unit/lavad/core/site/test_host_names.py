"""Host lists of HOSTS and -m, and the groups of a user."""

from __future__ import annotations

import pytest

from lavad.core.site.conf import Conf
from lavad.core.site.host_names import first_hosts, preferences

HOSTS = ("h1", "h2", "h3", "h4")
CONF = Conf(
    host_groups=(("left", ("h1", "h2")), ("both", ("left", "h4")), ("loop", ("loop", "h3"))),
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("all",), {"h1": 0, "h2": 0, "h3": 0, "h4": 0}),
        (("h2", "h9"), {"h2": 0}),
        (("both",), {"h1": 0, "h2": 0, "h4": 0}),
        (("loop",), {"h3": 0}),
        (("all", "~left"), {"h3": 0, "h4": 0}),
        (("~h1",), {"h2": 0, "h3": 0, "h4": 0}),
        (("h3+5", "left+", "others"), {"h1": 1, "h2": 1, "h3": 5, "h4": 0}),
        (("h3", "others+2"), {"h1": 2, "h2": 2, "h3": 0, "h4": 2}),
        (("h1!", "left+3"), {"h1": 3, "h2": 3}),
        ((), {}),
    ],
)
def test_preferences(words, expected):
    assert preferences(CONF, words, HOSTS) == expected


def test_first_hosts():
    assert first_hosts(CONF, ("left!", "h4"), HOSTS) == {"h1", "h2"}

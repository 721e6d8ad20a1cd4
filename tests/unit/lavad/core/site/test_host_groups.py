"""Host lists of HOSTS and -m."""

from __future__ import annotations

import pytest

from lavad.core.site.host_groups import MOST_KNOWN, HostGroups

HOSTS = ("h1", "h2", "h3", "h4")
GROUPS = HostGroups((("left", ("h1", "h2")), ("both", ("left", "h4")), ("loop", ("loop", "h3")), ("every", ("all",))))


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
        (("every+2", "h1+3", "~left"), {"h3": 2, "h4": 2}),
        (("h1+3", "every+2", "~h4"), {"h1": 3, "h2": 2, "h3": 2}),
        (("h1", "~every"), {}),
        (("h1", "~all", "others"), {}),
        (("~h9",), {"h1": 0, "h2": 0, "h3": 0, "h4": 0}),
    ],
)
def test_preferences(words, expected):
    assert GROUPS.preferences(words, HOSTS) == expected
    found = {host: GROUPS.meant(words).level(host) for host in HOSTS}
    assert {host: level for host, level in found.items() if level is not None} == expected


def test_first_hosts():
    assert GROUPS.first_hosts(("left!", "h4"), HOSTS) == {"h1", "h2"}


def test_long_lists_are_kept_for_as_long_as_there_is_room_for_their_hosts():
    """``bsub -m 'every+1'``, ``'every+2'`` and so on: what each means is as long as the group."""
    one = HostGroups((("every", tuple(f"h{at}" for at in range(20_000))),))
    first, room = one.meant(("every+0",)), MOST_KNOWN // 20_000
    for at in range(1, room // 2):
        one.meant((f"every+{at}",))
    assert one.meant(("every+0",)) is first
    for at in range(room // 2, room + 1):
        one.meant((f"every+{at}",))
    assert one.meant(("every+0",)) is not first

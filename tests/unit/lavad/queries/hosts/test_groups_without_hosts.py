"""A host group in which there is no host: no host is shown, and not all of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from tests.support.worlds.query_cluster import QueryCluster


@pytest.mark.parametrize(
    ("command", "lines", "said", "code"), [("bhosts", 0, "No host found\n", 255), ("lshosts", 1, "", 0), ("lsload", 1, "", 0)]
)
def test_no_host_is_listed(command: str, lines: int, said: str, code: int) -> None:
    c = QueryCluster()
    c.feed(ev.Configured(at=c.now, conf=replace(c.cluster.conf, host_groups=(("empty", ()), ("some", ("ol2",))))))
    listed, err, status = c.ask(command, "empty")
    assert (listed.count("\n"), err, status) == (lines, said, code)
    assert c.ask(command, "some")[0].count("\n") == 2

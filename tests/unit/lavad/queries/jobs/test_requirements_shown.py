"""BJOBS_RES_REQ_DISPLAY: of which requirements bjobs -l tells."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.worlds.query_cluster import QueryCluster

DETAILS = " RESOURCE REQUIREMENT DETAILS:"
TOGETHER = [" Combined: select[mem>2 && mem>1] order[r15s:pg]", " Effective: -"]
EACH = [" Job-level: select[mem>1]", " App-level: -", " Queue-level: select[mem>2]"]


@pytest.mark.parametrize(
    ("level", "wanted"), [("NONE", []), ("BRIEF", [DETAILS, *TOGETHER]), ("FULL", [DETAILS, *EACH, *TOGETHER])]
)
def test_each_level(level: str, wanted: list[str]) -> None:
    c = QueryCluster(bjobs_res_req_display=level)
    queues = tuple(replace(queue, res_req="select[mem>2]") for queue in c.cluster.conf.queues)
    c.cluster.configure(replace(c.cluster.conf, queues=queues))
    c.submit(1, queue="normal", resreq="select[mem>1]")
    out, err, status = c.ask("bjobs", "1", l=True)
    assert (err, status) == ("", 0)
    words = ("RESOURCE REQ", "Combined", "Effective", "Job-level", "App-level", "Queue-level")
    assert [line.rstrip() for line in out.splitlines() if line.strip().startswith(words)] == wanted

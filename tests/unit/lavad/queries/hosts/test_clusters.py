"""lsclusters, and bclusters, of which lava has none."""

from __future__ import annotations

from tests.support.worlds.query_cluster import QueryCluster


def test_there_is_one_cluster() -> None:
    c = QueryCluster()
    out, err, status = c.ask("bclusters")
    assert (err, status) == ("", 0)
    assert out.startswith("[Job Forwarding Information ]\nNo local queue sending/receiving jobs from remote clusters\n")
    assert "[Resource Lease Information ]\nNo resources have been exported or borrowed\n" in out
    assert c.ask("bclusters", "other")[1:] == ("other: Bad cluster name\n", 255)
    assert c.ask("bhosts", e=True) == ("No host is exported to another cluster\n", "", 0)


def test_the_cluster_names_its_administrators() -> None:
    assert "LSF administrators: openlava\n" in QueryCluster().ask("lsclusters", l=True)[0]

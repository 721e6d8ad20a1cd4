"""A site's own load index, said by an elim program, decides where a job runs."""

from __future__ import annotations

from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

RESOURCE = """
Begin Resource
RESOURCENAME TYPE INTERVAL INCREASING DESCRIPTION
fast Numeric 1 N (fast scratch)
End Resource
"""


def test_an_index_of_the_site_is_shown_and_asked_for(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        lines = (tmp_path / "conf" / "lsf.conf").read_text().splitlines()
        conf = {name: value.strip('"') for name, _, value in (line.partition("=") for line in lines)}
        folder = Path(conf["LSF_SERVERDIR"])
        folder.mkdir(parents=True, exist_ok=True)
        said = tmp_path / "said"
        said.write_text("5\n")
        elim = folder / "elim.fast"
        elim.write_text(f"#!/bin/sh\nwhile :; do echo 1 fast $(cat {said}); sleep 0.2; done\n")
        elim.chmod(0o755)
        with (tmp_path / "conf" / "lsf.shared").open("a") as file:
            file.write(RESOURCE)
        cluster.run("badmin reconfig")
        cluster.kill("agent-host1")
        cluster.up()
        wait_until(lambda: " 5.0" in cluster.run("lsload -l", ok=False).stdout, 30, "the index")
        assert "fast" in cluster.run("lsload -l").stdout.splitlines()[0]
        big, small = cluster.submit("-R 'select[fast>10]' true"), cluster.submit("-R 'select[fast>3]' true")
        assert cluster.wait_end(small) == ["DONE"]
        assert cluster.states(big) == ["PEND"]
        said.write_text("20\n")
        assert cluster.wait_end(big) == ["DONE"]

"""Application profiles: what their parameters do to the jobs that name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster

PROFILES = """
Begin Application
NAME = tuned
ENV_VARS = "FRUIT='ripe apple',CAR='civic',HOME='/none'"
End Application
"""

pytestmark = pytest.mark.cluster(hosts=1, conf={"lsb.applications": PROFILES})


def test_env_vars_are_the_jobs_unless_the_submission_has_them(cluster: Cluster, tmp_path: Path) -> None:
    assert "ENV_VARS:  FRUIT='ripe apple',CAR='civic',HOME='/none'\n" in cluster.run("bapp -l tuned").stdout
    say = """'echo "$FRUIT/$CAR/$HOME"'"""
    home = cluster.run(f"HOME=/home/me CAR=beetle bsub -app tuned -E 'echo $FRUIT > {tmp_path}/pre' -I {say}").stdout
    assert home.splitlines()[1:] == ["ripe apple/beetle//home/me"]
    assert (tmp_path / "pre").read_text() == "ripe apple\n"
    none = cluster.run(f"CAR=beetle bsub -app tuned -env 'none' -I {say}").stdout
    assert none.splitlines()[1:] == ["ripe apple/civic//none"]
    named = cluster.run(f"CAR=beetle bsub -app tuned -env 'all, ~CAR, FRUIT=pear' -I {say}").stdout
    assert named.splitlines()[1].startswith("pear/civic/")

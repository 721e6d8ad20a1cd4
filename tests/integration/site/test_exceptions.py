"""A job that ended too soon is told of in a mail to the administrators, once, also where lavad is killed before it looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

CONF = {
    "lsf.conf": "LSB_MAILPROG=@FOLDER@/mailer\n",
    "lsb.queues": "Begin Queue\nQUEUE_NAME = normal\nJOB_UNDERRUN = 5\nEnd Queue\n",
}


@pytest.mark.cluster(hosts=1, conf=CONF)
def test_a_mail_tells_of_each_exception_once(own_cluster: Cluster, tmp_path: Path) -> None:
    mailer, box = tmp_path / "mailer", tmp_path / "box"
    mailer.write_text(f"#!/bin/sh\ncat >> {box}\n")
    mailer.chmod(0o755)
    jobs = []
    for _ in range(2):
        jobs.append(own_cluster.submit("-o /dev/null true"))
        own_cluster.wait_for(jobs[-1], "DONE")
        own_cluster.kill("lavad")
        own_cluster.up()
    jobs.append(own_cluster.submit("-o /dev/null true"))
    wait_until(lambda: box.exists() and f"underrun   {jobs[-1]} " in box.read_text(), 120, own_cluster.logs)
    lines = box.read_text().splitlines()
    assert [line.split()[:2] for line in lines if line.startswith("underrun")] == [["underrun", str(job)] for job in jobs]
    assert lines[2].startswith("Subject: Job exceptions in cluster <")
    assert lines[2].endswith(": 3 underrun")
    assert "EXCEPTION STATUS:  underrun" in own_cluster.run(f"bjobs -l {jobs[0]}").stdout

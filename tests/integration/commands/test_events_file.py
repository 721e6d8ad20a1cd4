"""lsb.events and lsb.acct as tools read them."""

from __future__ import annotations

import shlex
from pathlib import Path

import psutil

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


def test_the_files(tmp_path: Path) -> None:
    """A workflow engine takes field 42 of JOB_NEW for the name, and field 5 of JOB_STATUS for the state."""
    with Cluster(tmp_path) as cluster:
        job = cluster.submit("-J 'rule_a:x=1___(uuid)' true")
        bad = cluster.submit("'exit 3'")
        cluster.wait_end(job)
        cluster.wait_end(bad)
        logdir = Path(cluster.run("badmin showconf mbd | sed -n 's/.*LSB_SHAREDIR = //p'").stdout.strip()) / "lava/logdir"
        wait_until(lambda: read(logdir / "lsb.acct", "JOB_FINISH", bad), 20, "the account to be written")
        new = read(logdir / "lsb.events", "JOB_NEW", job)[0]
        assert (new[41], new[42]) == ("rule_a:x=1___(uuid)", "true")
        states = [line[4] for line in read(logdir / "lsb.events", "JOB_STATUS", job)]
        assert states == ["64", "192"]
        assert [line[4] for line in read(logdir / "lsb.events", "JOB_STATUS", bad)] == ["32"]
        assert read(logdir / "lsb.events", "JOB_START", job)[0][9] == "host1"
        assert read(logdir / "lsb.acct", "JOB_FINISH", bad)[0]
        before = (logdir / "lsb.events").stat().st_size
        writer = next(one for one in psutil.Process(cluster.pid("lavad")).children() if one.name() == "lava-eventlog")
        writer.kill()
        between = cluster.submit("true")
        wait_until(lambda: read(logdir / "lsb.acct", "JOB_FINISH", between), 20, "the account by the process that follows")
        assert f"lava-eventlog (pid {writer.pid}, exit status -9) died; another starts in 0.5 s" in cluster.logs()
        away = logdir.rename(logdir.with_name("away"))
        logdir.touch()
        unwritten = cluster.submit("true")
        wait_until(lambda: "is not written: Not a directory" in cluster.run("badmin showstatus").stdout, 20, "the warning")
        assert "make room in LSB_SHAREDIR" in cluster.run("lava status").stdout
        logdir.unlink()
        away.rename(logdir)
        wait_until(lambda: "is not written" not in cluster.run("badmin showstatus").stdout, 20, "the end of the warning")
        assert len(read(logdir / "lsb.events", "JOB_NEW", unwritten)) == 1
        assert cluster.logs().count("is not written") == 1
        cluster.kill("lavad")
        cluster.up()
        last = cluster.submit("true")
        cluster.wait_end(last)
        wait_until(lambda: read(logdir / "lsb.acct", "JOB_FINISH", last), 20, "the last account")
        assert (logdir / "lsb.events").stat().st_size > before
        told = cluster.run(f"bhist -f {logdir}/lsb.events -l {job}").stdout
        assert "Done successfully" in told
        assert f"Job <{bad}>" not in told
        summed = cluster.run(f"cat {logdir}/lsb.acct | bacct -f - {bad}").stdout
        assert "Total number of exited jobs:     1\n" in summed
        assert "Total number of done jobs:       0 " in summed
        assert len(read(logdir / "lsb.events", "JOB_NEW", job)) == 1


def read(path: Path, kind: str, job: int) -> list[list[str]]:
    """The records of a job, as words."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [shlex.split(line) for line in lines]
    return [row for row in rows if row[0] == kind and row[3] == str(job)]

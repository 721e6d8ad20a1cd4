"""Dependencies on a real cluster: jobs wait for others, find finished ones, survive a master's restart, end as orphans."""

from __future__ import annotations

from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


def test_a_job_starts_after_another(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first = cluster.submit(f"-J prep 'until test -e {gate}; do sleep 0.1; done'")
    second = cluster.submit("-w 'done(prep)' true")
    cluster.wait_for(first, "RUN")
    assert cluster.states(second) == ["PEND"]
    assert "Job dependency condition not satisfied" in cluster.run(f"bjobs -p {second}").stdout
    assert "Dependency Condition <done(prep)>" in cluster.run(f"bjobs -UF {second}").stdout
    shown = cluster.run(f"bjdepinfo -l {second}").stdout.splitlines()
    assert shown[0] == f"The dependency condition of job <{second}> is not satisfied: done(prep)"
    assert shown[2].split() == [str(second), str(first), "RUN", "prep", "1"]
    assert cluster.run(f"bjdepinfo -c {first}").stdout.splitlines()[1].split()[1] == str(second)
    gate.touch()
    assert cluster.wait_end(second) == ["DONE"]


def test_a_finished_job_is_known(cluster: Cluster) -> None:
    first = cluster.submit("-J over 'exit 3'")
    cluster.wait_end(first)
    assert cluster.wait_end(cluster.submit(f"-w 'exit({first}, 3)' true")) == ["DONE"]
    assert cluster.wait_end(cluster.submit("-w 'ended(over)' true")) == ["DONE"]
    never = cluster.submit(f"-w 'done({first})' true")
    assert "Dependency condition invalid or never satisfied" in cluster.run(f"bjobs -p {never}").stdout
    cluster.run(f"bmod -w 'ended({first})' {never}")
    assert cluster.wait_end(never) == ["DONE"]


def test_an_orphan_ends(cluster: Cluster) -> None:
    first = cluster.submit("'sleep 1; exit 1'")
    second = cluster.submit(f"-ti -w 'done({first})' true")
    assert cluster.wait_end(second) == ["EXIT"]
    assert "TERM_ORPHAN_SYSTEM" in cluster.run(f"bjobs -l {second}").stdout


def test_orphans_of_a_site_end(cluster: Cluster) -> None:
    """ORPHAN_JOB_TERM_GRACE_PERIOD: those that wait for an orphan, too."""
    params = cluster.folder.conf / "lsb.params"
    before = params.read_text()
    params.write_text(before.replace("End Parameters", "ORPHAN_JOB_TERM_GRACE_PERIOD = 1\nEnd Parameters"))
    cluster.run("badmin reconfig")
    try:
        first = cluster.submit("'exit 1'")
        second = cluster.submit(f"-w 'done({first})' true")
        third = cluster.submit(f"-w 'done({second})' true")
        assert cluster.wait_end(third) == ["EXIT"]
        assert "TERM_ORPHAN_SYSTEM" in cluster.run(f"bjobs -l {second}").stdout
    finally:
        params.write_text(before)
        cluster.run("badmin reconfig")


def test_elements_wait_for_elements(cluster: Cluster) -> None:
    first = cluster.submit("-J 'a[1-4]' 'test $LSB_JOBINDEX != 3'")
    second = cluster.submit(f"-J 'b[1-4]' -w 'done({first}[*])' true")
    states = wait_until(
        lambda: now if (now := cluster.states(second)).count("DONE") == 3 else [], 30, lambda: str(cluster.states(second))
    )
    assert sorted(states) == ["DONE", "DONE", "DONE", "PEND"]
    cluster.run(f"bkill {second}")


def test_what_is_wrong_is_refused(cluster: Cluster) -> None:
    for words, text in (
        ("-w 'done('", "done(: Dependency condition syntax error. Job not submitted.\n"),
        ("-w 'done(99999)'", "99999: No matching job found. Job not submitted.\n"),
        ("-w nosuchname", "nosuchname: No matching job found. Job not submitted.\n"),
    ):
        done = cluster.run(f"bsub {words} true", ok=False)
        assert (done.returncode, done.stderr) == (255, text)


def test_a_restarted_master_remembers(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    ended = cluster.submit("'exit 3'")
    cluster.wait_end(ended)
    first = cluster.submit(f"'until test -e {gate}; do sleep 0.1; done'")
    second = cluster.submit(f"-w 'exit({ended}, 3) && done({first})' true")
    cluster.kill("lavad")
    cluster.up()
    assert cluster.states(second) == ["PEND"]
    gate.touch()
    assert cluster.wait_end(second) == ["DONE"]

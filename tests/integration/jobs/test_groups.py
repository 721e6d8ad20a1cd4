"""Job groups on a real cluster: added, limited, listed, controlled, removed."""

from __future__ import annotations

from pathlib import Path

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until


def test_groups_are_added_and_removed(cluster: Cluster) -> None:
    assert cluster.run("bjgroup", ok=False).stderr == "bjgroups: No job groups yet in the system.\n"
    assert cluster.run("bgadd -L 5 /lim/x").stdout == "Group /lim/x added successfully.\n"
    assert cluster.run("bgadd /lim/x", ok=False).stderr == "bgadd: Job group exists already.\n"
    assert cluster.run("bgmod -L 7 /lim/x").returncode == 0
    assert cluster.run("bjgroup /lim/x").stdout.splitlines()[1].split() == ["/lim/x", *"000000", "0/7"]
    assert cluster.run("bgdel /lim/x").stdout == "Group /lim/x removed successfully.\n"
    assert cluster.run("bgdel /nosuch", ok=False).stderr == "bgdel: Bad/empty job group name.\n"


def test_a_limit_holds(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    cluster.run("bgadd -L 2 /risk")
    job = cluster.submit(f"-g /risk/a -J 'r[1-4]' 'until test -e {gate}; do sleep 0.1; done'")
    wait_until(lambda: cluster.states(job).count("RUN") == 2, 20, "two to run")
    assert cluster.states(job).count("PEND") == 2
    shown = cluster.run(f"bjobs -p {job}").stdout
    assert "The specified job group has reached its job limit" in shown
    lines = {line.split()[0]: line.split()[1:] for line in cluster.run("bjgroup").stdout.splitlines()[1:]}
    assert lines["/risk/a"] == ["4", "2", "2", "0", "0", "0", "2/2"], "it has the limit of the group above it"
    assert lines["/risk"][-1] == "2/2"
    assert cluster.run("bgdel /risk", ok=False).stderr == "bgdel: The job group is not empty.\n"
    assert len(cluster.run("bjobs -noheader -o id -g /risk/").stdout.split()) == 4
    assert "No unfinished job found" in cluster.run("bjobs -g /risk").stderr
    gate.touch()
    assert cluster.wait_end(job) == ["DONE"] * 4


def test_a_group_is_killed(cluster: Cluster) -> None:
    jobs = [cluster.submit("-g /kill sleep 100") for _ in range(2)]
    cluster.run("bkill -g /kill 0")
    for job in jobs:
        assert cluster.wait_end(job) == ["EXIT"]


def test_groups_survive_a_restart(cluster: Cluster) -> None:
    cluster.run("bgadd -L 3 /kept")
    cluster.run("bgadd /gone")
    cluster.run("bgdel /gone")
    cluster.kill("lavad")
    cluster.up()
    shown = cluster.run("bjgroup").stdout
    assert "/kept" in shown
    assert "/gone" not in shown


def test_the_empty_groups_of_a_branch_go_together(cluster: Cluster) -> None:
    for name in ("/branch/a/b", "/branch/c", "/other"):
        cluster.run(f"bgadd {name}")
    job = cluster.submit("-H -g /branch/c true")
    done = cluster.run("bgdel -c /branch")
    assert done.stdout == "Group /branch/a/b removed successfully.\nGroup /branch/a removed successfully.\n"
    assert cluster.run("bgdel -c /branch/c", ok=False).stderr == "bgdel: The job group is not empty.\n"
    cluster.run(f"bkill {job}")
    assert cluster.run("bgdel -c /branch").stdout.splitlines()[-1] == "Group /branch removed successfully."
    assert "/other" in cluster.run("bjgroup").stdout

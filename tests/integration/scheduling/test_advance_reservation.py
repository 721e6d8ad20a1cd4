"""brsvadd, brsvs, brsvmod, brsvdel and bsub -U on a real cluster."""

from __future__ import annotations

import getpass
import time

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

ME = getpass.getuser()


SHORT = "An advance reservation must be 10 minutes or more in length"


def times(ahead: int, length: int) -> str:
    """-b and -e, in minutes from now."""
    at = [time.localtime(time.time() + 60 * minutes) for minutes in (ahead, ahead + length)]
    begin, end = (f"{t.tm_year}:{t.tm_mon}:{t.tm_mday}:{t.tm_hour}:{t.tm_min}" for t in at)
    return f"-b {begin} -e {end}"


def test_a_reservation_is_made_used_changed_kept_and_deleted(cluster: Cluster) -> None:
    host = cluster.run("bhosts -noheader").stdout.split()[0]
    later = cluster.run(f"brsvadd -n 4 -m {host} -u nobody {times(600, 60)}").stdout
    assert later == 'Reservation "nobody#0" is created\n'
    endless, short = cluster.submit("sleep 100"), cluster.submit("-W 5 true")
    assert cluster.wait_end(short) == ["DONE"]
    pending = cluster.run(f"bjobs -p {endless}").stdout
    assert "Not enough slots or resources for whole duration of the job: 1 host" in pending
    full = cluster.run(f"brsvadd -n 1 -m {host} -u {ME} {times(610, 20)}", ok=False).stderr
    assert full == "brsvadd: Not enough processors to be reserved: 0 of 1\n"

    assert cluster.run("brsvdel nobody#0").stdout == "Reservation nobody#0 is being deleted\n"
    cluster.wait_for(endless, "RUN")
    assert cluster.run(f"brsvadd -n 2 -m {host} -u {ME} {times(0, 30)} -N mine").returncode == 0
    job = cluster.submit("-U mine sleep 100")
    cluster.wait_for(job, "RUN")
    assert "Reservation <mine>" in cluster.run(f"bjobs -l {job}").stdout.replace("\n                     ", "")
    assert cluster.run("bjobs -noheader -o 'id rsvid' -U mine").stdout.split() == [str(job), "mine"]
    assert cluster.run("brsvmod -e +30 -d longer mine").stdout == 'Reservation "mine" is modified\n'

    cluster.kill("lavad")
    cluster.up()
    wait_until(lambda: cluster.run("brsvs", ok=False).returncode == 0, 20, "a master")
    lines = cluster.run("brsvs").stdout.splitlines()
    assert lines[0].split() == ["RSVID", "TYPE", "USER", "NCPUS", "RSV_HOSTS", "TIME_WINDOW"]
    assert lines[1].split()[:5] == ["mine", "user", ME, "1/2", f"{host}:1/2"]
    long = cluster.run("brsvs -l mine").stdout
    for word in ("Reservation Status: Active", "Reservation Type: CLOSED", "Description: longer", f"RUN Jobs: {job}"):
        assert word in long
    assert cluster.run("brsvdel mine", ok=False).returncode == 255
    cluster.run("brsvdel -f mine")
    cluster.wait_for(job, "RUN")


def test_what_is_wrong_is_refused_by_name(cluster: Cluster) -> None:
    host = cluster.run("bhosts -noheader").stdout.split()[0]
    for words, said in (
        ("bsub -U nosuch true", "nosuch: Bad reservation ID. Job not submitted."),
        ("brsvdel nosuch", "brsvdel: nosuch: Bad reservation ID"),
        (f"brsvadd -n 1 -m {host} -u {ME} {times(10, 5)}", "brsvadd: " + SHORT),
        (f"brsvadd -n 1 -m nosuch -u {ME} {times(10, 20)}", "brsvadd: nosuch: Bad host name, host group name or cluster name"),
        (f"brsvadd -n 1 -m {host} -u {ME} -t 8:00", "brsvadd: 8:00: Bad time window"),
        (f"brsvadd -n 1 -m {host} -u {ME} -b 25:00 -e 26:00", "brsvadd: 25:00: Bad begin time"),
    ):
        refused = cluster.run(words, ok=False)
        assert (refused.stderr, refused.returncode) == (said + "\n", 255)
    cluster.run(f"brsvadd -n 1 -m {host} -u nobody -t 0:00-1:00 -N night")
    refused = cluster.run("bsub -U night true", ok=False)
    assert refused.stderr == "night: User permission denied. Job not submitted.\n"
    assert "0:00-1:00 *" in cluster.run("brsvs night").stdout
    planner = cluster.run(f"brsvs -z {host}").stdout
    assert planner.count("\n0:0 ") == 1

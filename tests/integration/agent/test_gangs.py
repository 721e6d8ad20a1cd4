"""Two real agents: gangs are prepared, released, and end together."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, start_order
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

Pair = tuple[tuple[FakeMaster, AgentHost], tuple[FakeMaster, AgentHost]]
HOSTS = [pb.HostSlots(host="h1", slots=2), pb.HostSlots(host="h2", slots=1)]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = []
    for name in ("h1", "h2"):
        master = FakeMaster()
        host = AgentHost(tmp_path, master.address, name=name)
        host.spool = tmp_path / f"spool-{name}"
        host.start()
        made.append((master, host))
    for master, _ in made:
        wait_until(lambda: master.hellos, 30, "hello")  # noqa: B023
    yield made[0], made[1]
    for master, host in made:
        host.stop()
        master.stop()


def offer(pair: Pair, command: str, **fields: object) -> list[pb.Order]:
    cert, key = certificate(pair[0][1].folder)
    orders: list[pb.Order] = []
    for place, (master, host) in enumerate(pair):
        text = host.text(master, command, **fields)
        order = start_order(master, text, two_phase=True, hosts=HOSTS, place=place, cert_pem=cert, key_pem=key)
        order.uid = orders[0].uid if orders else order.uid
        orders.append(order)
        master.order(order, texts=(text,))
    return orders


def certificate(folder: Path) -> tuple[bytes, bytes]:
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=job"]
    files = ["-keyout", str(folder / "k"), "-out", str(folder / "c")]
    subprocess.run(["openssl", "req", "-x509", *kind, *files], check=True, capture_output=True)
    return (folder / "c").read_bytes(), (folder / "k").read_bytes()


def release(pair: Pair, orders: list[pb.Order]) -> None:
    endpoints = [m.wait_for(o.uid, "prepared").prepared.endpoint for (m, _), o in zip(pair, orders, strict=True)]
    for (master, _), order in zip(pair, orders, strict=True):
        master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, release=pb.Release(root=endpoints[0])))


def test_without_mpi_the_command_runs_once_on_the_first_host(pair: Pair) -> None:
    orders = offer(pair, 'echo once >> runs; echo "$LSB_MCPU_HOSTS"', output="out")
    (first, host), (second, _) = pair
    release(pair, orders)
    assert first.wait_for(orders[0].uid, "ended").ended.status == 0
    assert second.wait_for(orders[1].uid, "started").started.pid == 0
    second.order(pb.Order(key=7, attempt=1, uid=orders[1].uid, kill=pb.Kill()))
    end = second.wait_for(orders[1].uid, "ended").ended
    assert end.gone or second.wait_for(orders[1].uid, "gone")
    assert (host.folder / "work" / "runs").read_text() == "once\n"
    text = (host.folder / "work" / "out").read_text()
    assert text.startswith("h1 2 h2 1 \n")
    assert "Job was executed on host(s) <2*h1>, in queue" in text
    assert "\n" + " " * 28 + "<1*h2>\n" in text


def test_the_report_of_a_job_that_another_host_lost_ends_as_the_master_says(pair: Pair) -> None:
    orders = offer(pair, "sleep 600", output="out")
    (first, host), (second, _) = pair
    release(pair, orders)
    first.wait_for(orders[0].uid, "started")
    kill = pb.Kill(why="the starter was restarted", status=255 << 8)
    first.order(pb.Order(key=7, attempt=1, uid=orders[0].uid, kill=kill))
    first.wait_for(orders[0].uid, "ended")
    second.order(pb.Order(key=7, attempt=1, uid=orders[1].uid, kill=pb.Kill()))
    assert "\nThe starter was restarted.\nExited with exit code 255.\n" in (host.folder / "work" / "out").read_text()


def test_a_prepared_gang_that_is_killed_never_ran(pair: Pair) -> None:
    orders = offer(pair, "touch ran")
    for (master, _), order in zip(pair, orders, strict=True):
        master.wait_for(order.uid, "prepared")
        master.order(pb.Order(key=7, attempt=1, uid=order.uid, kill=pb.Kill()))
        end = master.wait_for(order.uid, "ended").ended
        assert end.gone or master.wait_for(order.uid, "gone")
    assert not (pair[0][1].folder / "work" / "ran").exists()


PMI_RANK = r"""
import os, socket
pmi = socket.socket(fileno=int(os.environ["PMI_FD"]))
file = pmi.makefile("rw")
def ask(line):
    file.write(line + "\n"); file.flush()
    return file.readline().strip()
ask("cmd=init pmi_version=1 pmi_subversion=1")
name = ask("cmd=get_my_kvsname").split("kvsname=")[1]
rank = os.environ["PMI_RANK"]
ask(f"cmd=put kvsname={name} key=k{rank} value=v{rank}")
ask("cmd=barrier_in")
def get(key):
    return ask(f"cmd=get kvsname={name} key={key}").split("value=")[1].split()[0]
found = [get(f"k{n}") for n in range(int(os.environ["PMI_SIZE"]))]
mapping = get("PMI_process_mapping")
print("rank", rank, *found, mapping, os.environ["LAVA_HOST"], flush=True)
ask("cmd=finalize")
"""


def test_ranks_on_two_hosts_meet_through_pmi(pair: Pair) -> None:
    script = "#!/usr/bin/python3\n" + PMI_RANK
    orders = offer(pair, "ranks", script=script, launch="mpi", output="out", label=True)
    release(pair, orders)
    (first, host), (second, _) = pair
    assert first.wait_for(orders[0].uid, "ended").ended.status == 0
    assert second.wait_for(orders[1].uid, "ended").ended.status == 0
    lines = (host.folder / "work" / "out").read_text().partition("\n\n---")[0].splitlines()
    where = {"0": "h1", "1": "h1", "2": "h2"}
    expected = [f"[{r}] rank {r} v0 v1 v2 (vector,(0,1,2),(1,1,1)) {where[r]}" for r in "012"]
    assert sorted(lines) == expected


def test_a_failing_rank_ends_the_gang_and_is_named(pair: Pair) -> None:
    command = 'if [ "$PMI_RANK" = 2 ]; then exit 9; fi; sleep 100'
    orders = offer(pair, command, launch="mpi", output="out")
    release(pair, orders)
    end = pair[0][0].wait_for(orders[0].uid, "ended", 15).ended
    assert (end.status, end.first_rank) == (9 << 8, 2)
    assert "Rank 2" in (pair[0][1].folder / "work" / "out").read_text()


BURN = r"""
import os, sys, time
held = b"x" * (40 << 20)
while time.process_time() < 0.5:
    pass
open("burnt." + os.environ["PMI_RANK"], "w").close()
while not os.path.exists("go"):
    time.sleep(0.05)
"""


def test_the_report_sums_all_hosts(pair: Pair) -> None:
    """CPU time, memory, processes and threads of the report are those of every host of the job."""
    orders = offer(pair, "burn", script="#!/usr/bin/python3\n" + BURN, launch="mpi", output="out")
    release(pair, orders)
    (first, host), (second, _) = pair
    work = host.folder / "work"
    wait_until(lambda: all((work / f"burnt.{rank}").exists() for rank in range(3)), 20, "all ranks to have burnt")
    for master in (first, second):
        count = len(master.heartbeats)
        wait_until(lambda: any(beat.usage for beat in master.heartbeats[count:]), 30, "samples")  # noqa: B023
    (work / "go").touch()
    ends = [m.wait_for(o.uid, "ended").ended for (m, _), o in zip(pair, orders, strict=True)]
    assert [end.status for end in ends] == [0, 0]
    own = [end.utime + end.stime for end in ends]
    text = (work / "out").read_text()
    assert _figure(text, "CPU time") == pytest.approx(sum(own), abs=0.011)
    assert _figure(text, "CPU time") >= 1.5
    assert _figure(text, "Max Memory") == pytest.approx(sum(end.max_mem for end in ends) / 1024, abs=1)
    assert _figure(text, "Max Memory") > 120
    assert (_figure(text, "Max Processes"), _figure(text, "Max Threads")) == (3, 3)


@pytest.mark.parametrize("direct", [True, False])
def test_an_attempt_that_lost_a_host_leaves_no_report_behind(pair: Pair, direct: bool) -> None:
    """The job runs again: its output file says so, and has no report of an end."""
    fields = {"launch": "mpi", "output": "out", "leased": True, "direct_output": direct}
    orders = offer(pair, "echo begun; sleep 100", **fields)
    release(pair, orders)
    (first, host), (_, other) = pair
    for (master, _), order in zip(pair, orders, strict=True):
        master.wait_for(order.uid, "started")
    killed = other.starter_pid()
    os.kill(killed, signal.SIGKILL)
    assert first.wait_for(orders[0].uid, "ended", 20).ended.status
    wait_until(lambda: other.starter_pid() not in (0, killed), 20, "another starter")  # so that it is there to be stopped
    text = (host.folder / "work" / "out").read_text()
    assert "begun\n" in text
    assert "Sender:" not in text
    assert "link to h2 lost" in text
    assert "It is to be run again with the same jobid.\n" in text


def _figure(text: str, name: str) -> float:
    return float(text.split(f"{name} :")[1].split()[0])

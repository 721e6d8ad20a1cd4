"""Queries that take long have a process of their own and a limit; one that hangs the query process costs the others nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

LIMIT = 2


@pytest.fixture
def own(own_cluster: Cluster) -> Cluster:
    conf = own_cluster.folder.path / "conf"
    with (conf / "lsf.conf").open("a") as file:
        file.write(f"LAVA_QUERY_TIME={LIMIT}\n")
    with (conf / "lsb.params").open("a") as file:
        file.write("Begin Parameters\nMAX_JOB_ARRAY_SIZE = 10000\nEnd Parameters\n")
    own_cluster.run("badmin reconfig")
    own_cluster.run("bsub -H -J 'many[1-4000]' sleep 1")
    own_cluster.run("bjobs 1[1]")
    return own_cluster


def children(pid: int) -> list[int]:
    found = [Path(task, "children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    return [int(word) for words in found for word in words]


def query_process(cluster: Cluster) -> int:
    """Its pid; 0: there is none now."""
    for pid in children(cluster.pid("lavad")):
        try:
            if Path(f"/proc/{pid}/comm").read_text().strip() == "lava-query":
                return pid
        except OSError:
            continue
    return 0


def answer(link: socket.socket) -> list[dict[str, object]]:
    """All frames up to the last."""
    frames: list[dict[str, object]] = []
    with link.makefile("rb") as file:
        while not frames or "exit" not in frames[-1]:
            frames.append(json.loads(file.read(int.from_bytes(file.read(4), "big"))))
    return frames


def test_a_query_beyond_its_time_is_ended_and_says_so(own: Cluster) -> None:
    """Its caller does not read: it waits in a fork, and others are answered meanwhile."""
    frame = json.dumps({"ask": "query", "command": "bjobs", "options": {"u": "all", "l": True}, "words": []}).encode()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(own.folder.run / "lavad.sock"))
        link.sendall(len(frame).to_bytes(4, "big") + frame)
        process = query_process(own)
        wait_until(lambda: children(process), 20, "a fork for the query")
        assert own.run("bjobs '1[1]'").stdout.count("many[1]") == 1
        wait_until(lambda: not children(process), 30, "the fork to be ended")
        frames = answer(link)
    assert frames[-2:] == [
        {"err": f"bjobs: The query took longer than {LIMIT} seconds (LAVA_QUERY_TIME) and was ended\n"},
        {"exit": 255},
    ]
    assert query_process(own) == process


def test_a_whole_long_list_comes_through(own: Cluster) -> None:
    assert own.run("bjobs -noheader -o 'jobindex command name user queue'").stdout.count("many[") == 4000
    assert own.run("bacct -u all", ok=False).stderr == ""


def test_queries_that_wait_are_sent_again_to_the_next_process(own: Cluster) -> None:
    process = query_process(own)
    os.kill(process, signal.SIGSTOP)
    command = ["/bin/sh", "-c", "bjobs -noheader -o jobid '1[7]'"]
    with subprocess.Popen(command, env=own.environ, stdout=subprocess.PIPE, text=True) as waits:
        wait_until(lambda: waits.poll() is None, 30, "the query to wait")
        os.kill(process, signal.SIGKILL)
        assert waits.communicate(timeout=60)[0].split() == ["1"]
    assert query_process(own) not in (0, process)

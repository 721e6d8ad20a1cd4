"""``-a FRAMEWORK`` in real jobs over two hosts: processes that meet by their environment alone, as torch's do."""

from __future__ import annotations

import json
import shutil
import socket
import zlib
from pathlib import Path

import pytest

from agent.launch.frameworks import FIRST_PORT, PORTS
from agent.starter.process.ports import Ports
from agent.starter.process.spec import Spec, Template
from agent.starter.protocol.part import PortsSpec
from agent.starter.protocol.reports import Root
from agent.starter.system.stdio import Refused
from tests.support.live.cluster import Cluster
from tests.support.live.inside import said
from tests.support.wait import wait_until

MEET = r"""#!/usr/bin/python3
import os, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    listener = socket.create_server(address, backlog=size)
    files = [listener.accept()[0].makefile("rw") for _ in range(size - 1)]
    total = sum(int(file.readline()) for file in files)
    for file in files:
        file.write(f"{total}\n"); file.flush()
else:
    until = time.monotonic() + 30
    while True:
        try:
            file = socket.create_connection(address).makefile("rw")
            break
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    file.write(f"{rank}\n"); file.flush()
    total = int(file.readline())
line = [os.environ["LAVA_HOST"], rank, size, os.environ["LOCAL_RANK"], total, *sys.argv[1:]]
sys.stdout.write(" ".join(map(str, line)) + "\n")
"""

TORCHRUN = r"""#!/usr/bin/python3
import os, subprocess, sys
given = [word for word in sys.argv[1:] if word.startswith("--")]
options = dict(word[2:].split("=", 1) for word in given)
program = sys.argv[1 + len(given):]
nodes, local = int(options["nnodes"]), int(options["nproc-per-node"])
node = int(options["node-rank"])
assert "RANK" not in os.environ and "WORLD_SIZE" not in os.environ
own = {"MASTER_ADDR": options["master-addr"], "MASTER_PORT": options["master-port"]}
started = []
for number in range(local):
    ranks = {"RANK": node * local + number, "WORLD_SIZE": nodes * local, "LOCAL_RANK": number}
    env = {**os.environ, **own, **{name: str(value) for name, value in ranks.items()}}
    started.append(subprocess.Popen([sys.executable, "-u", *program], env=env))
sys.exit(max(one.wait() for one in started))
"""

WORLD = sorted(f"host{1 + rank // 2} {rank} 4 {rank % 2} 6 a b" for rank in range(4))


pytestmark = pytest.mark.cluster(hosts=2)


def run(cluster: Cluster, folder: Path, words: str, state: str = "DONE") -> list[str]:
    job = cluster.submit(f"-o out.%J {words}", cwd=folder)
    assert cluster.wait_end(job, timeout=60) == [state], (folder / f"out.{job}").read_text()
    return said(wait_until(lambda: folder / f"out.{job}", 30, "output")).splitlines()


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


TWO = '-n 4 -R "span[ptile=2]" -m "host1+9 host2"'


def test_ranks_on_two_hosts_meet(cluster: Cluster, tmp_path: Path) -> None:
    """One submit starts every process, and an unchanged env:// program finds the others."""
    program(tmp_path, "train.py", MEET)
    lines = run(cluster, tmp_path, f"-a pytorch {TWO} /usr/bin/python3 train.py a b")
    assert sorted(lines) == WORLD


def test_ranks_on_one_host_meet(cluster: Cluster, tmp_path: Path) -> None:
    """On one host too, each line marked with its rank."""
    program(tmp_path, "train.py", MEET)
    lines = run(cluster, tmp_path, '-a deepspeed -label -n 3 -R "span[hosts=1]" -m host2 ./train.py')
    assert sorted(lines) == [f"[{rank}] host2 {rank} 3 {rank} 3" for rank in range(3)]


def test_both_modes_give_the_same_ranks(cluster: Cluster, tmp_path: Path) -> None:
    """One process a rank, and one launcher a host: the program reports identical global ranks."""
    program(tmp_path, "train.py", MEET)
    program(tmp_path, "torchrun", TORCHRUN)
    each = run(cluster, tmp_path, f"-a pytorch {TWO} ./train.py a b")
    assert sorted(each) == WORLD
    for command in ("./torchrun train.py a b", "./torchrun ./train.py a b"):
        assert sorted(run(cluster, tmp_path, f'-a "torchrun(static)" {TWO} {command}')) == WORLD


def test_a_torchrun_of_each_host_is_told_where_to_meet(cluster: Cluster, tmp_path: Path) -> None:
    """The rendezvous options, and the same in the environment, without any rank."""
    program(tmp_path, "torchrun", '#!/bin/sh\necho "$*"\nenv | grep -E "^(PET_|RANK|WORLD_SIZE)" | sort | tr "\\n" " "; echo\n')
    job = cluster.submit(f"-o out -a torchrun -label {TWO} ./torchrun --max-restarts=2 train.py", cwd=tmp_path)
    cluster.wait_for(job, "DONE")
    lines = sorted(said(tmp_path / "out").splitlines())
    words = [next(line for line in lines if line.startswith(f"[{n}] --")).split() for n in range(2)]
    for place, one in enumerate(words):
        endpoint = words[0][5]
        assert endpoint.startswith("--rdzv-endpoint=127.0.0.")
        port = int(endpoint.rpartition(":")[2])
        assert FIRST_PORT <= port < FIRST_PORT + PORTS
        assert one[1:5] == ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-id=lava-{job}-1"]
        assert one[5:7] == [endpoint, f"--rdzv-conf=is_host={1 - place}"]
        assert one[7].startswith("--local-addr=127.0.0.")
        assert one[8:] == ["--max-restarts=2", "train.py"]
    assert sum("PET_NPROC_PER_NODE=2" in line and "WORLD_SIZE" not in line for line in lines) == 2


def test_every_worker_has_a_port_of_its_host(cluster: Cluster, tmp_path: Path) -> None:
    """TF_CONFIG of all tasks agrees, its addresses differ, and each task can listen on its own."""
    script = r"""#!/usr/bin/python3
import json, os, socket
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]
host, port = config["cluster"][task["type"]][task["index"]].rsplit(":", 1)
socket.create_server((host, int(port)))
print(os.environ["TF_CONFIG"], flush=True)
"""
    program(tmp_path, "train.py", script)
    lines = [json.loads(line) for line in run(cluster, tmp_path, f'-a "tensorflow(chief)" {TWO} ./train.py')]
    assert len(lines) == 4
    assert all(line["cluster"] == lines[0]["cluster"] for line in lines)
    known = lines[0]["cluster"]
    assert (len(known["chief"]), len(known["worker"])) == (1, 3)
    assert len({*known["chief"], *known["worker"]}) == 4
    tasks = sorted((line["task"]["type"], line["task"]["index"]) for line in lines)
    assert tasks == [("chief", 0), ("worker", 0), ("worker", 1), ("worker", 2)]


def test_the_first_rank_that_fails_ends_all(cluster: Cluster, tmp_path: Path) -> None:
    """The others wait for it without end: they are ended, and its code is the job's."""
    program(tmp_path, "train.py", '#!/bin/sh\n[ "$RANK" = 2 ] && exit 9\nexec sleep 1000\n')
    job = cluster.submit(f"-o out -a jax {TWO} ./train.py", cwd=tmp_path)
    assert cluster.wait_end(job) == ["EXIT"]
    assert cluster.run(f"bjobs -noheader -o exit_code {job}").stdout.strip() == "9"


def test_what_each_rank_finds(cluster: Cluster, tmp_path: Path) -> None:
    """Names and addresses of the peers, and a rank file that is there."""
    line = 'echo "$LAVA_PEERS|$JSM_NAMESPACE_RANK/$JSM_NAMESPACE_SIZE|$GLOO_SOCKET_IFNAME|$(wc -l <$LSB_DJOB_RANKFILE)"'
    program(tmp_path, "train.sh", f"#!/bin/sh\n{line}\n")
    lines = sorted(run(cluster, tmp_path, f"-a lightning {TWO} ./train.sh"))
    for rank, one in enumerate(lines):
        peers, own, interface, length = one.split("|")
        assert [peer.split(":")[:2] for peer in peers.split()] == [["host1", "2"], ["host2", "2"]]
        assert (own, interface, length) == (f"{rank}/4", "lo", "5")


def test_a_launcher_in_the_command_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    """A second launcher would start n times n processes; unknown words are named."""
    done = cluster.run("bsub -a pytorch -n 2 torchrun train.py", ok=False)
    assert done.returncode != 0
    assert "torchrun: -a pytorch starts every rank itself" in done.stderr
    done = cluster.run('bsub -a "jax(chief)" -n 2 ./train.py', ok=False)
    assert "-a jax does not know chief" in done.stderr


def asked(count: int, first: int, of: int = PORTS) -> PortsSpec:
    return PortsSpec(0, 1, count, first, FIRST_PORT, of)


def free_port() -> int:
    made = Ports(asked(1, FIRST_PORT + zlib.crc32(b"test") % PORTS))
    made.close()
    return made.numbers[0]


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_an_occupied_port_is_passed_over(family: socket.AddressFamily) -> None:
    """The port is in use on one address: the next is chosen, and it is kept until the program starts."""
    if family == socket.AF_INET6 and not socket.has_dualstack_ipv6():
        pytest.skip("no IPv6 here")
    port = free_port()
    with socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", port), family=family):
        made = Ports(asked(2, port))
    assert port not in made.numbers
    assert len(set(made.numbers)) == 2
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("127.0.0.1", made.numbers[0]))
    made.free()
    socket.create_server(("127.0.0.1", made.numbers[0])).close()
    other = Ports(asked(1, made.numbers[0]))
    assert other.numbers[0] not in made.numbers
    made.close()
    other.close()


def test_no_free_port_is_refused() -> None:
    """And nothing stays held."""
    port = free_port()
    with socket.create_server(("127.0.0.1", port)), pytest.raises(Refused, match="1 free ports are needed"):
        Ports(asked(1, port, 1)._replace(low=port))


def test_a_port_that_nobody_told_is_refused() -> None:
    """A mark never reaches a program."""
    made = Ports(asked(0, FIRST_PORT))
    spec = Spec(Template({"argv": ["x"]}), {"uid": "u", "tasks": [{"rank": 0, "env": {"MASTER_PORT": "@LAVA_PORT_1_0@"}}]})
    with pytest.raises(Refused, match="the port of host 2"):
        made.fill(spec, Root("127.0.0.1", 5, ((6,),)))
    made.fill(spec, Root("127.0.0.1", 5, ((), (7,))))
    assert spec.tasks[0].env == {"MASTER_PORT": "7"}


def test_python_is_here() -> None:
    """The programs of these tests need one that every user can run."""
    assert shutil.which("/usr/bin/python3")

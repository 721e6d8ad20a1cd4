"""Hosts in networks of their own whose names nothing resolves: real TCP between them, mutual TLS to the master."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.support.live.cluster import VENV
from tests.support.live.inside import run_script
from tests.support.live.job_files import lava_run
from tests.support.live.netns import NetnsCluster
from tests.support.live.ranks import compiled

TCP = "export UCX_TLS=tcp,self MPIR_CVAR_NOLOCAL=1; "
"""Both hosts share a kernel: without this UCX would find a shorter way than the network."""


pytestmark = pytest.mark.cluster(hosts=2, apart="yes")

BIG = """
import os, socket
from mpi4py import MPI
import array
w = MPI.COMM_WORLD
mine = array.array("d", [w.rank + 1.0]) * 500_000
total = array.array("d", [0.0]) * 500_000
w.Allreduce(mine, total)
os.write(1, f"rank {w.rank} of {w.size} on {socket.gethostname()}: {total[-1]:.0f}\\n".encode())
"""


def seen(text: str) -> list[str]:
    """Ranks and sums, without where they were; both hosts must have been used."""
    lines = [line for line in text.splitlines() if line.startswith("rank")]
    assert len({line.split()[5] for line in lines}) == 2, text
    return sorted(f"{line.split()[1]} {line.split()[-1]}" for line in lines)


RIGHT = [f"{rank} 10" for rank in range(4)]


def test_mpiexec_reaches_hosts_whose_names_do_not_resolve(cluster: NetnsCluster, tmp_path: Path) -> None:
    """Addresses, not names, go to Hydra's proxies; the ranks' data crosses the wire."""
    (tmp_path / "big.py").write_text(BIG)
    before = cluster.sent("host2")
    code, text = run_script(cluster, tmp_path, TCP + "mpiexec python big.py", slots=2)
    assert (code, seen(text)) == (0, RIGHT), text
    assert cluster.sent("host2") - before > 4_000_000


def test_direct_launch_over_the_network(cluster: NetnsCluster, tmp_path: Path) -> None:
    """The shepherds' link and PMI need no name either."""
    (tmp_path / "big.py").write_text(BIG)
    job = cluster.submit('-a mpi -n 4 -R "span[ptile=2]" -m "host1 host2" -o out "' + TCP + 'exec python big.py"', cwd=tmp_path)
    cluster.wait_for(job, "DONE", timeout=60)
    assert seen((tmp_path / "out").read_text()) == RIGHT


MEET = """
import os, socket, time
rank, address = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    with socket.create_server(address) as door:
        names = [door.accept()[0].recv(100).decode() for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
    print(sorted(names), os.environ["GLOO_SOCKET_IFNAME"])
else:
    while True:  # rank 0 may begin much later than this one
        try:
            with socket.create_connection(address, 10) as link:
                link.sendall(f"{rank} {socket.gethostname()}".encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
"""


def test_a_framework_meets_at_an_address(cluster: NetnsCluster, tmp_path: Path) -> None:
    """MASTER_ADDR is what the others reach, and gloo is told the interface that has it."""
    (tmp_path / "meet.py").write_text(MEET)
    words = '-a pytorch -n 4 -R "span[ptile=2]" -m "host1 host2" -o out python3 meet.py'
    job = cluster.submit(words, cwd=tmp_path)
    cluster.wait_for(job, "DONE", timeout=60)
    assert re.search(r"\['1 (host.)', '2 (host.)', '3 \2'\] eth0", (tmp_path / "out").read_text())


HOROVOD = """
import os, socket, time, urllib.error, urllib.request
env = os.environ
rank, size = int(env["HOROVOD_RANK"]), int(env["HOROVOD_SIZE"])
url = f"http://{env['HOROVOD_GLOO_RENDEZVOUS_ADDR']}:{env['HOROVOD_GLOO_RENDEZVOUS_PORT']}/global/"
def ask(verb, key, body=None):
    return urllib.request.urlopen(urllib.request.Request(url + str(key), body, method=verb), timeout=30).read()
ask("PUT", rank, f"address of {rank}".encode())
found = []
while len(found) < size:
    try:
        found.append(ask("GET", len(found)).decode())
    except urllib.error.HTTPError as e:
        assert e.code == 404
        time.sleep(0.01)
ask("DELETE", rank)
assert env["HOROVOD_GLOO_RENDEZVOUS_ADDR"].startswith("127.0.0.1:")
for peer in env["LAVA_PEERS"].split():
    address = peer.split(":")[2], int(env["HOROVOD_GLOO_RENDEZVOUS_PORT"])
    try:
        with socket.create_connection(address, 10) as link:
            link.sendall(f"GET {url} HTTP/1.0\\r\\n\\r\\n".encode())
            assert link.recv(1) == b""
    except (ConnectionError, TimeoutError):
        pass
assert found == [f"address of {number}" for number in range(size)]
print("rank", rank, env["HOROVOD_LOCAL_RANK"], env["HOROVOD_CROSS_RANK"], flush=True)
"""


def test_horovods_ranks_meet_at_lavas_rendezvous(cluster: NetnsCluster, tmp_path: Path) -> None:
    """The server that horovodrun would run, asked as Horovod's gloo store asks it: on each host by loopback alone."""
    (tmp_path / "meet.py").write_text(HOROVOD)
    job = cluster.submit('-a horovod -n 4 -R "span[ptile=2]" -m "host1 host2" -o out python3 meet.py', cwd=tmp_path)
    cluster.wait_end(job, timeout=60)
    lines = sorted(line for line in (tmp_path / "out").read_text().splitlines() if line.startswith("rank"))
    assert lines == [f"rank {rank} {rank % 2} {rank // 2}" for rank in range(4)]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
def test_blaunch_and_the_death_of_a_rank_over_the_network(cluster: NetnsCluster, tmp_path: Path) -> None:
    """A task on the other host, and a rank that dies there ends all with its code."""
    assert run_script(cluster, tmp_path, "blaunch host2 hostname") == (0, "host2\n")
    program = compiled(tmp_path, VENV / "mpicc", "rank")
    job = cluster.submit(f'-a mpi -n 4 -R "span[ptile=2]" -m "host1 host2" -o out {program} 3', cwd=tmp_path)
    cluster.wait_for(job, "EXIT", timeout=30)
    assert "rank 3" in cluster.run(f"bjobs -l -UF {job}").stdout


MPIJOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi}
spec:
  slotsPerWorker: 3
  mpiImplementation: MPICH
  mpiReplicaSpecs:
    Launcher:
      template:
        spec:
          containers:
          - name: mpi
            command: [mpiexec, -ppn, "2", -hosts, "pi-worker-0.pi,pi-worker-1.pi", python, big.py]
            env:
            - {name: PATH, value: "BIN:/usr/bin:/bin"}
            - {name: MPIR_CVAR_NOLOCAL, value: "1"}
            - {name: UCX_TLS, value: "tcp,self"}
    Worker: {replicas: 2, template: {spec: {containers: [{name: mpi}]}}}
"""


def test_an_mpijob_names_its_workers_by_the_host_names_of_their_pods(cluster: NetnsCluster, tmp_path: Path) -> None:
    """What the names become are addresses, by which blaunch knows the hosts of the job, too."""
    (tmp_path / "big.py").write_text(BIG)
    (tmp_path / "job.yaml").write_text(MPIJOB.replace("BIN", str(VENV)))
    job = lava_run(cluster, tmp_path, "-o out job.yaml")
    cluster.wait_for(job, "DONE", "EXIT", timeout=60)
    assert seen((tmp_path / "out").read_text()) == RIGHT

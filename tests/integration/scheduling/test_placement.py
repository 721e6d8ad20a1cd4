"""Compute units, processors, GPUs and reservations for a time, on a running cluster, as its commands show them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.support.live.cluster import Cluster
from tests.support.wait import wait_until

UNITS = """
Begin ComputeUnit
NAME  MEMBER          TYPE
r1    (host1)         rack
r2    (host2 host3)   rack
End ComputeUnit
"""


pytestmark = pytest.mark.cluster(
    hosts=3,
    slots=8,
    options=("--gpus", "8"),
    environ={"LAVA_SIM_TOPOLOGY": "2x1x4x2", "LAVA_SIM_GPU_MIG": "7=3g.40gb,1g.10gb"},
)


@pytest.fixture(scope="module", autouse=True)
def racks(cluster: Cluster) -> None:
    """Two racks are compute units; a host is in one of them."""
    params, hosts = cluster.folder.conf / "lsb.params", cluster.folder.conf / "lsb.hosts"
    params.write_text(params.read_text().replace("End Parameters", "COMPUTE_UNIT_TYPES = rack!\nEnd Parameters"))
    hosts.write_text(hosts.read_text() + UNITS)
    cluster.run("badmin reconfig -f")


def job(cluster: Cluster, options: str, command: str = "sleep 60") -> str:
    return cluster.run(f"bsub -o out.%J {options} {command}").stdout.split("<")[1].partition(">")[0]


def hosts_of(cluster: Cluster, number: str) -> str:
    wait_until(lambda: cluster.run(f"bjobs -noheader -o 'stat exec_host' {number}").stdout.startswith("RUN"), 20, "it runs")
    counts = Counter(cluster.run(f"bjobs -noheader -o exec_host {number}").stdout.strip().split(":"))
    return " ".join(f"{count}*{host}" for host, count in counts.items())


def test_a_gang_goes_to_one_rack(cluster: Cluster) -> None:
    first, second = job(cluster, "-n 10 -R 'cu[maxcus=1]'"), job(cluster, "-n 3 -R 'cu[pref=bestfit]'")
    assert hosts_of(cluster, first) in ("8*host2 2*host3", "8*host3 2*host2")
    assert hosts_of(cluster, second) in ("3*host2", "3*host3")
    assert "r2            rack           host2 host3 " in cluster.run("bmgroup -cu").stdout
    cluster.run(f"bkill {first} {second}")


def test_processors_and_gpus_are_given_and_shown(cluster: Cluster) -> None:
    number = job(
        cluster,
        "-m host1 -n 2 -gpu num=4:j_exclusive=yes -R 'affinity[core(2,same=socket):membind=localprefer]'",
        "'echo $LSB_BIND_CPU_LIST $CUDA_VISIBLE_DEVICES; cat $LSB_AFFINITY_HOSTFILE; sleep 60'",
    )
    assert hosts_of(cluster, number) == "2*host1"
    shown = cluster.run(f"bjobs -l -aff {number}").stdout
    assert " host1               core   core   -      /0/0/0 /0/0/1   pref  0    -\n" in shown
    assert "core0(*0 *8)" in cluster.run("bhosts -l -aff host1").stdout
    path = cluster.folder.path / f"out.{number}"
    wait_until(lambda: path.exists() and "host1" in path.read_text(), 20, "output")
    lines = path.read_text().splitlines()
    assert lines[0].startswith("0,1,2,3,8,9,10,11 GPU-")
    assert lines[1:3] == ["host1 0,1,8,9 0 2", "host1 2,3,10,11 0 2"]
    cluster.run(f"bkill {number}")


def test_every_rank_sees_a_gpu_of_its_own(cluster: Cluster) -> None:
    """num=1/task on two hosts with two ranks each, by PMI and by blaunch; what the submission says of GPUs counts for nothing."""
    show = "echo $HOSTNAME $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES"
    where = "-n 4 -R span[ptile=2] -gpu num=1/task:j_exclusive=yes"
    cluster.run(f"CUDA_VISIBLE_DEVICES=0,1 bsub -K -o ranks.out -a mpi {where} '{show}'")
    in_shell = show.replace("$", "\\$")
    cluster.run(f"CUDA_VISIBLE_DEVICES=0,1 bsub -K -o tasks.out {where} 'blaunch \"{in_shell}\"'")
    cluster.run(f"CUDA_VISIBLE_DEVICES=0,1 bsub -K -o none.out '{show}'")
    texts = {name: (cluster.folder.path / f"{name}.out").read_text() for name in ("ranks", "tasks", "none")}
    for name in ("ranks", "tasks"):
        lines = [line.split() for line in texts[name].splitlines() if re.match(r"host\d GPU-", line)]
        assert len({host for host, _, _ in lines}) == 2, texts[name]
        assert len({gpu for _, gpu, _ in lines}) == 4, texts[name]
        assert all("," not in gpu and gpu == same for _, gpu, same in lines), texts[name]
    assert re.search(r"^host\d void$", texts["none"], re.M), texts["none"]


def test_memory_of_gpus_and_instances_are_given_and_what_cannot_be_had_is_named(cluster: Cluster) -> None:
    share = "-m host3 -gpu gmem=50G:j_exclusive=no:gpack=yes"
    sharing = [job(cluster, share) for _ in range(2)]
    small = [job(cluster, f"{share}:gmodel=H100".replace("50G", "20G")) for _ in range(2)]
    slice_, whole = job(cluster, "-m host3 -gpu mig=3/3"), job(cluster, "-m host3 -gpu num=8")
    for number in (*sharing, *small, slice_):
        assert hosts_of(cluster, number) == "1*host3"

    def cards(number: str) -> str:
        return cluster.run(f"bjobs -noheader -o gpu_alloc {number}").stdout.strip()

    assert cards(sharing[0]) != cards(sharing[1])
    assert {cards(small[0]), cards(small[1])} <= {cards(one) for one in sharing}
    table = cluster.run(f"bjobs -l -gpu {slice_}").stdout.partition("GPU_ALLOCATION:")[2]
    assert re.search(r"host3 +0 +7 +-/3 +-/3 +NVIDIAH10080", table), table
    assert " 50G " in cluster.run(f"bjobs -l -gpu {sharing[0]}").stdout.partition("GPU_ALLOCATION:")[2]

    waiting = {
        "mig=3/2": "MIG instances of that size (mig)",
        "gmodel=B300": "so many GPUs of its model (gmodel)",
        "gmem=900G": "so much GPU memory (gmem, gmodel)",
    }
    numbers = {job(cluster, f"-gpu {text}"): words for text, words in waiting.items()} | {whole: "GPUs that are not split (MIG)"}

    def told() -> bool:
        return all(f"no host can ever give it {words}" in cluster.run(f"bjobs -p {one}").stdout for one, words in numbers.items())

    wait_until(told, 20, "each says what is missing")
    cluster.run(f"bmod -gpu num=1:j_exclusive=no {whole}")
    cluster.run(f"bkill {' '.join((*sharing, *small, slice_, *numbers))}")


def test_a_reservation_ends_before_its_job(cluster: Cluster) -> None:
    wide = "-m host1 -R 'rusage[tmp=1:duration=2s]'"
    number = job(cluster, wide)
    hosts_of(cluster, number)
    wait_until(lambda: " 1M" not in reserved(cluster), 20, "nothing is reserved any more")
    assert cluster.run(f"bjobs -noheader -o stat {number}").stdout.strip() == "RUN"
    cluster.run(f"bkill {number}")


def reserved(cluster: Cluster) -> str:
    return next(line for line in cluster.run("bhosts -l host1").stdout.splitlines() if line.startswith(" Reserved"))

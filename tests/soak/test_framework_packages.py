"""Training frameworks by their real packages, on two hosts in networks of their own where root allows that.

Wheels are fetched into a cache (hundreds of MB, once); what cannot be fetched is skipped by name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.netns import why_not
from tests.support.live.wheels import environment

PACKAGES = {
    "torch": ("torch", "numpy", "lightning"),
    "jax": ("jax",),
    "tensorflow": ("tensorflow-cpu",),
}


pytestmark = pytest.mark.cluster(hosts=2, apart="if possible")


def bin_of(name: str) -> Path:
    """The bin folder of an environment with the framework; skips."""
    folder, why = environment(name, *PACKAGES[name], within=1200)
    if why:
        pytest.skip(why)
    return folder


def ran(cluster: Cluster, folder: Path, program: str, words: str, command: str, slots: int = 4) -> list[str]:
    """The sorted lines of a job that succeeds."""
    (folder / "train.py").write_text(program)
    span = f'-n {slots} -R "span[ptile={slots // 2}]" -m "host1 host2"'
    job = cluster.submit(f"{words} {span} -o out -e err {command}", cwd=folder)
    state = cluster.wait_end(job, timeout=240)
    text = (folder / "out").read_text()
    assert state == ["DONE"], text + (folder / "err").read_text()[-4000:]
    return sorted(line for line in text.splitlines() if line.startswith("rank "))


DDP = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
model = DDP(torch.nn.Linear(4, 1))
step = torch.optim.SGD(model.parameters(), lr=0.05)
want = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
for _ in range(200):
    x = torch.randn(32, 4)
    loss = ((model(x) - x @ want) ** 2).mean()
    step.zero_grad(); loss.backward(); step.step()
mine = torch.cat([p.detach().flatten() for p in model.parameters()])
least, most = mine.clone(), mine.clone()
dist.all_reduce(least, dist.ReduceOp.MIN)
dist.all_reduce(most, dist.ReduceOp.MAX)
assert torch.equal(least, most), "the ranks have different weights"
assert loss < 0.01, loss
print(f"rank {rank} of {size} local {os.environ['LOCAL_RANK']}", flush=True)
dist.barrier()  # without it torch 2.14 aborts a rank whose peers still send, under its own torchrun too
dist.destroy_process_group()
"""
FOUR = [f"rank {rank} of 4 local {rank % 2}" for rank in range(4)]


def test_pytorch_ddp(cluster: Cluster, tmp_path: Path) -> None:
    """One process a rank; the weights are the same on all ranks at the end."""
    python = bin_of("torch") / "python"
    assert ran(cluster, tmp_path, DDP, "-a pytorch", f"{python} train.py") == FOUR


@pytest.mark.parametrize("kind", ["torchrun", '"torchrun(static)"'])
def test_pytorch_ddp_by_torchrun(cluster: Cluster, tmp_path: Path, kind: str) -> None:
    """One launcher a host; the same program reports the same ranks."""
    python = bin_of("torch") / "python"
    lines = ran(cluster, tmp_path, DDP, f"-a {kind}", f"{python} train.py")
    assert [line.partition(" local")[0] for line in lines] == [line.partition(" local")[0] for line in FOUR]


PYTORCHJOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch, command: [PYTHON, train.py], resources: {limits: {cpu: 3}}}]}}}
    Worker: {template: {spec: {containers: [{name: pytorch, command: [PYTHON, train.py], resources: {limits: {cpu: 3}}}]}}}
"""


def test_pytorchjob_ddp(cluster: Cluster, tmp_path: Path) -> None:
    """The tasks of a manifest, on hosts whose names nothing resolves, meet by Gloo as ranks of -a pytorch do."""
    (tmp_path / "train.py").write_text(DDP)
    (tmp_path / "job.yaml").write_text(PYTORCHJOB.replace("PYTHON", str(bin_of("torch") / "python")))
    said = cluster.run("lava run -o out -e err job.yaml", cwd=tmp_path).stdout
    state = cluster.wait_end(int(said.partition("<")[2].partition(">")[0]), timeout=240)
    assert state == ["DONE"], (tmp_path / "err").read_text()[-4000:]
    lines = sorted(line for line in (tmp_path / "out").read_text().splitlines() if line.startswith("rank "))
    assert lines == ["rank 0 of 2 local 0", "rank 1 of 2 local 0"]


LIGHTNING = """
import os
from lightning.fabric.plugins.environments import LSFEnvironment
assert LSFEnvironment.detect()
e = LSFEnvironment()
print(f"rank {e.global_rank()} of {e.world_size()} local {e.local_rank()} node {e.node_rank()} {e.main_address} {e.main_port}",
      flush=True)
"""


def test_lightnings_lsf_environment(cluster: Cluster, tmp_path: Path) -> None:
    """Lightning believes that it runs under LSF, and is right about every rank."""
    if why_not():
        pytest.skip("hosts with names of their own need root")
    python = bin_of("torch") / "python"
    lines = ran(cluster, tmp_path, LIGHTNING, "-a lightning", f"{python} train.py")
    assert [line.rsplit(" ", 2)[0] for line in lines] == [f"{one} node {rank // 2}" for rank, one in enumerate(FOUR)]
    mains = {tuple(line.rsplit(" ", 2)[1:]) for line in lines}
    assert len(mains) == 1  # of the host that lava put first, whichever that is
    assert mains.pop()[0] in cluster.hosts


JAX = """
import os, jax
jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]),
                           int(os.environ["JAX_PROCESS_ID"]))
from jax.experimental import multihost_utils
import jax.numpy as jnp
got = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1.0]))
print(f"rank {jax.process_index()} of {jax.process_count()} sum {float(got.sum())}", flush=True)
jax.distributed.shutdown()
"""


def test_jax_distributed(tmp_path: Path) -> None:
    """jax.distributed.initialize with what the environment says. (JAX's own collectives between CPUs look up the name of
    the host, whatever they are told: hosts whose names resolve.)"""
    python = bin_of("jax") / "python"
    tmp_path.chmod(0o755)
    with Cluster(tmp_path / "cluster", hosts=2, slots=4) as cluster:
        lines = ran(cluster, tmp_path, JAX, "-a jax", f"{python} train.py")
    assert lines == [f"rank {rank} of 4 sum 10.0" for rank in range(4)]


TENSORFLOW = """
import json, os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
task = json.loads(os.environ["TF_CONFIG"])["task"]
@tf.function
def add():
    def one():
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.constant(task["index"] + 1.0))
    return strategy.run(one)
print(f"rank {os.environ['RANK']} of {strategy.num_replicas_in_sync} {task['type']} sum {float(add())}", flush=True)
"""


def test_tensorflow_workers(cluster: Cluster, tmp_path: Path) -> None:
    """MultiWorkerMirroredStrategy reads TF_CONFIG; an all-reduce over both hosts."""
    python = bin_of("tensorflow") / "python"
    lines = ran(cluster, tmp_path, TENSORFLOW, "-a tensorflow", f"{python} train.py", slots=2)
    assert lines == [f"rank {rank} of 2 worker sum 3.0" for rank in range(2)]

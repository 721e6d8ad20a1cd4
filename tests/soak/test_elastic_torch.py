"""PyTorch's own elastic training under a job that goes from two to four to three hosts, and loses one of them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.live.cluster import Cluster
from tests.support.live.wheels import environment
from tests.support.wait import wait_until

MANIFEST = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: train}}
spec:
  elasticPolicy: {{rdzvBackend: c10d, minReplicas: 2, maxReplicas: 4, maxRestarts: 100}}
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - name: pytorch
            command: [{bins}/python3, -m, torch.distributed.run, {train}, {folder}, "100000"]
"""
TRAIN = Path(__file__).parents[2] / "examples" / "elastic" / "train.py"


@pytest.mark.parametrize("how", ["bsub", "manifest"])
def test_torchrun_goes_from_two_to_four_to_three_to_two_workers(tmp_path: Path, how: str) -> None:
    """By growth, bresize and a lost host. No step is lost beyond the last checkpoint, never fewer workers than the minimum."""
    bins, why = environment("torch", "torch", "numpy", "lightning", within=1200)
    if why:
        pytest.skip(why)
    steps = tmp_path / "train" / "steps"
    steps.parent.mkdir()

    def rows() -> list[dict[str, int]]:
        # a line that is being written may be read in part
        return [json.loads(line) for line in steps.read_text().split("\n")[:-1]] if steps.exists() else []

    with Cluster(tmp_path / "cluster", hosts=4, slots=1) as cluster:
        cluster.environ["PATH"] = f"{bins}:{cluster.environ['PATH']}"
        fillers = [cluster.submit(f"-m host{number} sleep 3600") for number in (3, 4)]
        for filler in fillers:
            cluster.wait_for(filler, "RUN")
        if how == "bsub":
            job = cluster.submit(f"-a torchrun -ar -r -n 2,4 -o {tmp_path}/out {bins}/python3 {TRAIN} {steps.parent} 100000")
        else:
            (tmp_path / "job.yaml").write_text(MANIFEST.format(bins=bins, train=TRAIN, folder=steps.parent))
            said = cluster.run(f"lava run -r -o {tmp_path}/out {tmp_path}/job.yaml").stdout
            job = int(said.partition("<")[2].partition(">")[0])

        def story() -> str:
            out = tmp_path / "out"
            said = out.read_text(errors="replace")[-8000:] if out.exists() else ""
            return f"{rows()[-1:]}\n{cluster.run(f'bhist -l {job}; bjobs -l {job}').stdout}\n{said}"

        def reach(workers: int) -> None:
            wait_until(lambda: rows() and rows()[-1]["world"] == workers, 300, lambda: f"{workers} workers: {story()}")

        reach(2)
        cluster.run(f"bkill {fillers[0]} {fillers[1]}")
        reach(4)
        hosts = lambda: cluster.run(f"bjobs -noheader -o exec_host {job}").stdout.strip().split(":")  # noqa: E731
        cluster.run(f"bresize release {hosts()[-1]} {job}")
        reach(3)
        cluster.kill_host(hosts()[-1])
        reach(2)
        assert cluster.states(job) == ["RUN"]
        cluster.run(f"bkill {job}")
        cluster.wait_end(job, timeout=90)
    seen = rows()
    assert min(row["world"] for row in seen) >= 2
    assert all(b["step"] in (a["step"] + 1, b["from"] + 1) for a, b in pairwise(seen))

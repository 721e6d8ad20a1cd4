"""Data-parallel training with PyTorch that goes on from its newest checkpoint when a host dies, with the same bits in the end.

    bsub -a pytorch -n 2 -R "span[ptile=1]" -k "checkpoints auto method=app" -o out.%J python3 train.py RESULT STEPS

The agreement with lava is in appcheckpoint.py (examples/heat), which is made to be copied beside this file; its communicator
here is torch.distributed. Rank 0 writes the model and the optimizer, which are alike on all ranks. The weights of the end are
those of an undisturbed run: each step's data follow from its number alone. With `-gpu` it trains on GPUs, each rank on its own.
"""

from __future__ import annotations

import io
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "heat"))
import torch
import torch.distributed as dist
from appcheckpoint import AppCheckpoint  # first: it installs the signal's handler
from torch.nn.parallel import DistributedDataParallel


class Ranks:
    """What AppCheckpoint needs of mpi4py's communicator, by torch.distributed."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def bcast(self, item: Any) -> Any:
        """Rank 0's item, on all ranks."""
        box = [item]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def allgather(self, item: Any) -> list[Any]:
        """The items of all ranks."""
        items: list[Any] = [None] * self.size
        dist.all_gather_object(items, item)
        return items

    def Allreduce(self, mine: Any, total: Any) -> None:
        """The sum of one number of each rank."""
        number = torch.tensor([mine[0]])
        dist.all_reduce(number)
        total[0] = int(number[0])


def find_device() -> torch.device:
    """This rank's GPU, if the job has some: the same bits each time, which cuBLAS promises for a workspace of a fixed size."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def main() -> int:
    """Train until the last step; rank 0 writes the weights to RESULT."""
    result, steps = Path(sys.argv[1]), int(sys.argv[2])
    pause = float(os.environ.get("STEP_SECONDS", "0"))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    device = find_device()
    # gradients go by NCCL between GPUs; what AppCheckpoint agrees on is on the host
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
    model = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).to(device)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(parallel.parameters(), lr=0.01)
    checkpoint = AppCheckpoint(Ranks())
    rank, first = dist.get_rank(), 0
    if found := checkpoint.newest():
        saved = torch.load(found.folder / "state", weights_only=True, map_location=device)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        first = int(found.facts["step"])
    print(f"rank {rank}: steps {first} to {steps} on {device}", flush=True)
    for step in range(first, steps):
        if checkpoint.wanted():
            data = io.BytesIO()
            if checkpoint.leads:
                torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, data)
            checkpoint.save("state" if checkpoint.leads else f"rank-{rank}", data.getvalue(), {"step": step})
        inputs = torch.randn(8, 16, generator=torch.Generator().manual_seed(1000 * step + rank)).to(device)
        loss = (parallel(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(pause)
    if rank == 0:
        torch.save(model.state_dict(), result)
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

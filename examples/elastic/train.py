"""Elastic data-parallel training with PyTorch: it goes on with as many workers as the job has hosts at the moment.

    bsub -a torchrun -ar -n 2,4 -o out.%J python3 train.py FOLDER STEPS

torchrun of each host meets the others; when a host joins or leaves, all workers start again and go on from the newest
checkpoint in FOLDER. A line for each step goes to FOLDER/steps.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

SAVE_EVERY = 5


def load(path: Path, model: torch.nn.Module) -> int:
    """The step that the newest checkpoint was made at."""
    if not path.exists():
        return 0
    saved = torch.load(path, weights_only=True)
    model.load_state_dict(saved["model"])
    return int(saved["step"])


def save(path: Path, model: torch.nn.Module, step: int) -> None:
    """Whole, or not at all."""
    temporary = path.with_suffix(".new")
    torch.save({"model": model.state_dict(), "step": step}, temporary)
    os.replace(temporary, path)


def main() -> int:
    """Train until the last step."""
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    first = load(folder / "checkpoint", model)
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    for step in range(first + 1, steps + 1):
        inputs = torch.randn(8, 4)
        loss = (parallel(inputs) - inputs.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.1)
        if rank == 0:
            if step % SAVE_EVERY == 0:
                save(folder / "checkpoint", model, step)
            with (folder / "steps").open("a") as file:
                file.write(json.dumps({"step": step, "world": world, "from": first, "loss": loss.item()}) + "\n")
    dist.barrier()
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

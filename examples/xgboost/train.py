"""XGBoost on several hosts: each task has its own rows, and all end with the same model (docs/examples.md)."""

from __future__ import annotations

import hashlib
import os

import numpy as np
import xgboost
from xgboost.collective import CommunicatorContext
from xgboost.tracker import RabitTracker


def train(rank: int, size: int, host: str, port: int) -> str:
    """The SHA-256 of the model."""
    with CommunicatorContext(
        dmlc_communicator="rabit", dmlc_tracker_uri=host, dmlc_tracker_port=port, dmlc_task_id=str(rank), dmlc_nworker=size
    ):
        rows = np.random.default_rng(rank).normal(size=(1000, 5))
        matrix = xgboost.DMatrix(rows, rows[:, 0] > 0)
        model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, num_boost_round=5)
    return hashlib.sha256(model.save_raw()).hexdigest()


def main() -> None:
    """The first task also serves the tracker, by which all meet."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    tracker = RabitTracker(host_ip=host, n_workers=size, port=port) if rank == 0 else None
    if tracker:
        tracker.start()
    print(f"rank {rank} of {size} has the model {train(rank, size, host, port)}", flush=True)
    if tracker:
        tracker.wait_for()


if __name__ == "__main__":
    main()

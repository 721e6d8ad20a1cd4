"""What the start of a master waits for: its processes load nothing large that the first answer does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.local.folder import ROOT


@pytest.mark.parametrize(
    ("module", "late"),
    [
        ("lavad.processes.query", {"asyncio", "grpc", "numpy", "sqlalchemy"}),
        ("lavad.processes.scheduler", {"asyncio", "grpc", "numpy", "sqlalchemy"}),
        ("lavad.office", {"grpc", "numpy", "psycopg", "prometheus_client", "cryptography", "alembic", "yaml"}),
        ("lavad.main", {"asyncio", "grpc", "numpy", "sqlalchemy"}),
    ],
)
def test_a_process_starts_without_what_it_may_load_later(module: str, late: set[str]) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert module in loaded
    assert not loaded & late


FEW_HOSTS = """
import sys
from tests.support.worlds.world import World
world = World()
world.hosts("h1", "h2", slots=2, gpus=1)
jobs = [world.submit(**fields) for fields in ({}, {"slots": 2}, {"gpu": "num=1"}, {"exclusive": True}, {"array": "1-9"})]
for _ in range(3):
    world.schedule()
    for key in world.step():
        world.finish(key)
    world.submit(slots=5)
    for switch in (True, False):
        world.host_switch("h1", switch)
        world.schedule()
    world.load("h2", r1m=float(switch))
    world.later(60.0)
assert len(world.cluster.jobs.rows) < 12
print(*sys.modules)
"""


def test_a_few_hosts_are_planned_without_numpy() -> None:
    """It is 12 MB of the memory of such a scheduler, and nearly all of the time to its first plan."""
    done = subprocess.run([sys.executable, "-c", FEW_HOSTS], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "lavad.sched.cycle.cycle" in loaded
    assert "numpy" not in loaded

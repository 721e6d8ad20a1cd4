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

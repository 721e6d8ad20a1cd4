"""What NVIDIA's own program says of GPUs, and a program that uses one."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

WAIT = 60.0
CUDA_USER = [sys.executable, str(Path(__file__).with_name("cuda_user.py"))]


def smi(what: str, fields: str) -> list[dict[str, str]]:
    """What nvidia-smi says: ``--query-gpu`` or ``--query-compute-apps``."""
    words = ["nvidia-smi", f"--query-{what}={fields}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=WAIT).stdout
    except FileNotFoundError:
        pytest.skip("no nvidia-smi on this host")
    return [dict(zip(fields.split(","), row, strict=True)) for row in csv.reader(text.splitlines(), skipinitialspace=True)]


def number(text: str) -> float | None:
    """None where nvidia-smi has ``[N/A]`` or ``[Not Supported]``."""
    try:
        return float(text)
    except ValueError:
        return None

"""The Pythons of this machine, for what is to run with each of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
"""Those that lava_client is for."""


def python(version: str) -> str:
    """An interpreter of this version that runs: of PATH, or of pyenv."""
    roots = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")]
    kept = [str(path) for root in roots for path in sorted(root.glob(f"versions/{version}.*/bin/python"))]
    for found in (shutil.which(f"python{version}"), *kept):
        if found and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            return found
    pytest.skip(f"no python{version} here")

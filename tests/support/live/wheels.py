"""Programs of other people for tests: wheels in an environment of their own, kept in a cache folder and made at most once."""

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


def environment(name: str, *packages: str, within: float = 180) -> tuple[Path, str]:
    """(the bin folder of an environment that has the packages, why it is not there): one of the two is empty."""
    folder = cache_folder() / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / MADE).exists() and (why := _make(folder, name, packages, within)):
                return Path(), why
    except OSError as e:
        return Path(), f"{e.filename}: {e.strerror}"
    return folder / "venv" / "bin", ""


def _make(folder: Path, name: str, packages: tuple[str, ...], within: float) -> str:
    install = [str(folder / "venv" / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for step in ([sys.executable, "-m", "venv", "--clear", str(folder / "venv")], [*install, *packages]):
        try:
            done = subprocess.run(step, capture_output=True, text=True, timeout=within, check=False)
        except subprocess.TimeoutExpired:
            return f"{name} could not be fetched in {within:.0f} s"
        if done.returncode:
            last = (done.stderr.strip() or "no reason given").splitlines()[-1]
            return f"{name} cannot be installed here: {last}"
    (folder / MADE).touch()
    return ""

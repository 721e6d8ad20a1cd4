"""Programs and libraries of other people for tests: wheels and Debian's packages, in a cache folder, fetched at most once."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
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
    why = _once(folder, lambda: _make(folder, name, packages, within))
    return (Path(), why) if why else (folder / "venv" / "bin", "")


def debian_library(package: str, pattern: str, within: float = 60) -> tuple[Path, str]:
    """(a library that the system has, or its package, which is not installed; why it is not there): one of the two is empty."""
    found = next(Path("/usr/lib").glob(f"*/{pattern}"), None)
    folder = cache_folder() / package
    why = "" if found else _once(folder, lambda: _unpack(folder, package, within))
    if why:
        return Path(), why
    found = found or next(folder.rglob(pattern), None)
    return (found, "") if found else (Path(), f"no {pattern} in {package}")


def _once(folder: Path, make: Callable[[], str]) -> str:
    """Fill a folder of the cache, unless it is full: why it cannot be, ""."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if (folder / MADE).exists():
                return ""
            why = make()
            if not why:
                (folder / MADE).touch()
            return why
    except OSError as e:
        return f"{e.filename}: {e.strerror}"


def _make(folder: Path, name: str, packages: tuple[str, ...], within: float) -> str:
    python = str(folder / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    return _run([[sys.executable, "-m", "venv", "--clear", str(folder / "venv")], install], folder, name, within)


def _unpack(folder: Path, package: str, within: float) -> str:
    steps = [["apt-get", "download", "-qq", package], ["sh", "-c", "exec dpkg -x ./*.deb ."]]
    return _run(steps, folder, package, within)


def _run(steps: list[list[str]], folder: Path, name: str, within: float) -> str:
    for step in steps:
        try:
            done = subprocess.run(step, cwd=folder, capture_output=True, text=True, timeout=within, check=False)
        except subprocess.TimeoutExpired:
            return f"{name} could not be fetched in {within:.0f} s"
        if done.returncode:
            last = (done.stderr.strip() or "no reason given").splitlines()[-1]
            return f"{name} cannot be installed here: {last}"
    return ""

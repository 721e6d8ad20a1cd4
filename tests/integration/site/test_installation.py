"""lava from its sdist and wheel in a clean virtual environment: every command is there, quick, isolated, and alone in PATH.

What lava depends on comes from the environment of these tests, so that no network is needed.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.install_commands import SERVER
from cli.native.build import LIBRARY, built, built_library
from proto.commands import INSTALLED, NATIVE
from tests.support.wait import SLOW, wait_until
from tests.unit.cli.native.installed import processes

ROOT = Path(__file__).parents[3]
NOT_COPIED = shutil.ignore_patterns(".*", "build", "dist", "scratch", "tests", "benchmarks", "*.egg-info", "__pycache__")
BAD_MODULES = ("os", "json", "cli", "config", "proto", "encodings")


def run(*words: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True, timeout=120 * SLOW, check=False
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with lava from a wheel, made of an sdist, made of this tree."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.copytree(ROOT, folder / "tree", ignore=NOT_COPIED)
    sdist = "from setuptools import build_meta; print(build_meta.build_sdist('../dist'))"
    name = run(sys.executable, "-c", sdist, cwd=folder / "tree").split()[-1]
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir")
    options = ("--quiet", "--no-deps", "--no-index")
    run(*pip, "wheel", *options, "--no-build-isolation", "-w", folder / "dist", folder / "dist" / name, cwd=folder)
    made = folder / "lava"
    run(sys.executable, "-m", "venv", "--without-pip", made, cwd=folder)
    wheels = list((folder / "dist").glob("*.whl"))
    run(*pip, "--python", made / "bin" / "python", "install", *options, *wheels, cwd=folder)
    purelib = Path(sysconfig.get_path("purelib", vars={"base": str(made)}))
    (purelib / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return made


@pytest.fixture
def user(prefix: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody whose PYTHONPATH and current folder hold modules that would break any Python."""
    for name in BAD_MODULES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a module of the user was imported')\n")
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path), "LANG": "C.UTF-8"}


@pytest.fixture
def exported(prefix: Path, user: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment behind ``eval "$(lava up)"``."""
    lava, folder = prefix / "bin" / "lava", tmp_path / "cluster"
    try:
        exports = run(lava, "up", "--dir", folder, "--slots", "2", cwd=tmp_path, env=user)
        yield {**user, **dict(re.findall(r"^export (\w+)='?(.*?)'?$", exports, re.M))}
    finally:
        run(lava, "down", "--dir", folder, cwd=tmp_path, env=user)


def test_a_job_runs_in_a_cluster_of_the_installed_lava(prefix: Path, exported: dict[str, str], tmp_path: Path) -> None:
    assert exported["PATH"] == f"{prefix}/lib/lava/bin:/usr/bin:/bin"
    assert exported["LSF_BINDIR"] == f"{prefix}/lib/lava/bin"

    def sh(line: str) -> str:
        return run("/bin/sh", "-c", line, cwd=tmp_path, env=exported)

    assert sh('bsub -o out "command -v python3; command -v bjobs"') == "Job <1> is submitted to default queue <normal>.\n"
    wait_until(lambda: sh("bjobs -a -noheader -o stat 1") == "DONE\n", 30, lambda: sh("bjobs -al"))
    assert (tmp_path / "out").read_text().splitlines()[:2] == [
        shutil.which("python3", path="/usr/bin:/bin"),
        f"{prefix}/lib/lava/bin/bjobs",
    ]
    assert "lava 0.1.0" in sh("lsid")
    assert "host1 " in sh("bhosts")
    assert sh("lava status").count("\n") == 3


def test_the_folder_of_path_has_the_commands_and_nothing_else(prefix: Path) -> None:
    assert sorted(os.listdir(prefix / "lib" / "lava" / "bin")) == sorted(INSTALLED)
    assert set(INSTALLED) <= set(os.listdir(prefix / "bin"))
    for folder in ("bin", "lib/lava/bin"):
        for name in INSTALLED:
            assert os.access(prefix / folder / name, os.X_OK), name


@pytest.mark.parametrize("folder", ["bin", "lib/lava/bin"])
def test_native_commands_of_a_wheel_have_their_plain_form_and_server(prefix: Path, user: dict[str, str], folder: str) -> None:
    plain = prefix / "lib" / "lava" / "plain"
    if built() is None:
        assert not plain.exists()
        pytest.skip("no C compiler")
    assert sorted(os.listdir(plain)) == sorted((SERVER, *NATIVE))
    bsub = prefix / folder / "bsub"
    assert bsub.read_bytes()[:4] == b"\x7fELF"
    wait_until(lambda: run(bsub, "-V", cwd=prefix, env=user) == "" and processes(prefix), 30, "a server")
    for pid in processes(prefix):
        os.kill(pid, signal.SIGTERM)


@pytest.mark.parametrize("folder", ["bin", "lib/lava/bin"])
def test_every_command_starts_isolated(prefix: Path, user: dict[str, str], tmp_path: Path, folder: str) -> None:
    for name in INSTALLED:
        done = subprocess.run(
            [prefix / folder / name, "-h"], cwd=tmp_path, env=user, capture_output=True, text=True, timeout=60 * SLOW, check=False
        )
        assert "usage" in (done.stdout + done.stderr).lower() or name == "lseligible", (name, done)
        assert "Traceback" not in done.stderr, (name, done)
        assert done.returncode in (0, 255), (name, done)


def test_a_link_to_a_command_is_the_command(prefix: Path, user: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "jobs").symlink_to(prefix / "bin" / "bjobs")
    done = subprocess.run([tmp_path / "jobs", "-V"], cwd=tmp_path, env=user, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[:10]) == (0, "lava 0.1.0")


def test_what_a_site_needs_is_in_the_wheel(prefix: Path) -> None:
    purelib = Path(sysconfig.get_path("purelib", vars={"base": str(prefix)}))
    for folder in ("systemd", "monitoring"):
        there = {path.name for path in (prefix / "share" / "lava" / folder).iterdir()}
        assert there == {path.name for path in (ROOT / "docs" / folder).iterdir()}
    for folder in ("config/samples", "lavad/store/migrations/versions"):
        there = {path.name for path in (purelib / folder).iterdir() if path.is_file()}
        assert there == {path.name for path in (ROOT / folder).iterdir() if path.is_file()}
    assert (purelib / "proto" / "agent.proto").exists()
    if (library := built_library(str(ROOT))) is not None:
        assert (purelib / LIBRARY).read_bytes()[:4] == library[:4]
    assert all((purelib / package / "py.typed").exists() for package in ("agent", "cli", "config", "lavad", "proto"))

"""The executables of the commands, run as processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.install_commands import install, launcher
from proto.commands import COMMANDS, INSTALLED
from tests.unit.cli.caller import Caller
from tests.unit.cli.scripted_master import ScriptedMaster

ROOT = str(Path(__file__).resolve().parents[3])


def test_every_command_has_its_executable(tmp_path: Path):
    install(str(tmp_path), sys.executable, ROOT)
    for name in INSTALLED:
        assert os.access(tmp_path / name, os.X_OK)
        __import__(COMMANDS[name].module)


@pytest.fixture
def folder_of_bad_modules(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("config", "os", "json", "cli"):
        (folder / f"{name}.py").write_text("raise SystemExit('a user s own module was imported')\n")
    return folder


def test_a_users_own_modules_break_nothing(caller: Caller, folder_of_bad_modules: Path):
    """CONTRACT: commands work from any folder, with any PYTHONPATH."""
    install(str(caller.folder / "bin"), sys.executable, ROOT)
    environ = {**caller.environ, "PYTHONPATH": str(folder_of_bad_modules), "PYTHONHOME": "/nosuch"}
    with ScriptedMaster(caller.socket, [{"ok": {"job": 7, "queue": "q", "default": False}}]):
        done = subprocess.run(
            [caller.folder / "bin" / "bsub", "true"],
            env=environ,
            cwd=folder_of_bad_modules,
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Job <7> is submitted to queue <q>.\n", "")


def test_the_start_imports_next_to_nothing(caller: Caller):
    """Modules that would cost more than the command itself are not loaded on the way to the master."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import cli.bsub, cli.listing, cli.bkill; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-ISc", program, ROOT], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    dear = "re typing json socket subprocess argparse dataclasses enum logging asyncio msgspec grpc inspect functools"
    assert not loaded & set(dear.split())


@pytest.mark.parametrize("folder", ["with a blank", "x" * 130, "it's"])
def test_a_path_that_no_first_line_can_hold_goes_through_sh(caller: Caller, folder: str):
    home = caller.folder / folder
    home.mkdir()
    (home / "python").symlink_to(sys.executable)
    program = caller.folder / "lsid"
    program.write_text(launcher("lsid", str(home / "python"), ROOT))
    program.chmod(0o755)
    with ScriptedMaster(caller.socket, [{"out": "My cluster name is c\n"}, {"exit": 0}]):
        done = subprocess.run([program], env=caller.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "My cluster name is c\n", "")

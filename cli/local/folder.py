"""The folder of a cluster on one machine: its layout, and the exports that put its commands into a shell."""

from __future__ import annotations

import json
import os
import shlex
import sys
from errno import ENOENT
from pathlib import Path
from typing import NamedTuple

from cli.install_commands import ALONE

ROOT = Path(__file__).resolve().parents[2]
"""What holds lava's packages: a checkout, or site-packages."""


class CannotUp(Exception):
    """Why ``lava`` could not do it, in one line."""


def commands_folder() -> Path:
    """The folder with lava's commands and nothing else, which goes into PATH; raises FileNotFoundError.

    It lies below the prefix of the running Python, or where ``lava`` itself is installed elsewhere (by ``pip install --user``,
    or in Debian's /usr/local), below that prefix.
    """
    program = Path(sys.argv[0]).resolve()
    for prefix in (Path(sys.prefix), *program.parents[1:5]):
        if (prefix / ALONE / "bsub").exists():
            return prefix / ALONE
    raise FileNotFoundError(ENOENT, "lava's commands are not there: make install, or pip install", str(Path(sys.prefix) / ALONE))


def default_folder(environ: os._Environ[str] | dict[str, str]) -> Path:
    """The cluster's folder without ``--dir``: LAVA_DIR (set by ``lava env``), else one under the user's state directory."""
    if environ.get("LAVA_DIR"):
        return Path(environ["LAVA_DIR"])
    state = environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state, "lava")


class Shape(NamedTuple):
    """What ``lava up`` was told the first time."""

    hosts: list[str]
    slots: int
    masters: int
    database: str
    gpus: int = 0
    """Simulated ones on each host."""
    web: int = -1
    """The port of the page; -1: there is none."""


class Folder:
    """Paths of one cluster."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()  # by which its daemons know it, whatever links lead there
        self.conf = self.path / "conf"
        self.run = self.path / "run"
        self.log = self.path / "log"
        self.spool = self.path / "spool"
        self.shape_file = self.path / "shape.json"

    def make(self) -> None:
        """Create the folders. Other users may enter them; files with keys have modes of their own."""
        for folder in (self.path, self.conf, self.run, self.log, self.spool):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)

    def pid_file(self, name: str) -> Path:
        """The pid file of ``lavad``, ``lavad-2``, ``agent-HOST`` or ``starter-HOST``."""
        return self.run / f"{name}.pid"

    @property
    def web_address(self) -> Path:
        """Where the page's process writes its address."""
        return self.run / "web.address"

    def master_names(self, count: int) -> list[str]:
        """The masters: ``lavad``, ``lavad-2`` …"""
        return ["lavad" if number == 1 else f"lavad-{number}" for number in range(1, count + 1)]

    def find_shape(self) -> Shape | None:
        """The shape of the cluster; None where none was made here."""
        try:
            found = json.loads(self.shape_file.read_text())
        except FileNotFoundError:
            return None
        if "ports" in found:  # as lava 0.1 wrote it
            found["masters"] = len(found.pop("ports"))
        return Shape(**found)

    def keep_shape(self, shape: Shape) -> None:
        """Write the shape, for the next ``lava up`` here."""
        new = self.shape_file.with_suffix(".new")
        new.write_text(json.dumps(shape._asdict(), indent=1) + "\n")
        new.replace(self.shape_file)

    def places(self) -> dict[str, str]:
        """The variables that tell commands and tools where this cluster is."""
        return {
            "LSF_ENVDIR": str(self.conf),
            "LSF_CONFDIR": str(self.conf),
            "LSF_BINDIR": str(commands_folder()),
            "LSF_SERVERDIR": str(self.path / "etc"),
            "LSF_LIBDIR": str(self.path / "lib"),
            "LAVA_DIR": str(self.path),
        }

    def exports(self) -> str:
        """The export lines that ``lava up`` and ``lava env`` print for ``eval``."""
        commands = str(commands_folder())
        path = [folder for folder in os.environ.get("PATH", "/usr/bin:/bin").split(":") if folder != commands]
        names = {"PATH": ":".join([commands, *path]), **self.places()}
        return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in names.items())

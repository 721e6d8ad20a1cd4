"""What pyproject.toml cannot say of a wheel: its commands, which are made from ``proto/commands.py`` as the wheel is built.

They go into the scripts' folder, and again into lib/lava/bin below the same prefix, where nothing else lies.
"""

from __future__ import annotations

import os
import sys

from setuptools import setup
from setuptools.dist import Distribution

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cli.install_commands import ALONE, portable_launcher, write
from proto.commands import INSTALLED

_install_scripts = Distribution().get_command_class("install_scripts")
_install_data = Distribution().get_command_class("install_data")


class InstallScripts(_install_scripts):
    """``cli/lava-python``, whose first line the installer sets to its interpreter, and the commands, which read it."""

    def run(self) -> None:
        super().run()
        os.makedirs(self.install_dir, exist_ok=True)
        for command in INSTALLED:
            write(os.path.join(self.install_dir, command), portable_launcher(command, alone=False))


class InstallData(_install_data):
    """The units, and the folder of commands that goes into PATH."""

    def run(self) -> None:
        super().run()
        folder = os.path.join(self.install_dir, ALONE)
        os.makedirs(folder, exist_ok=True)
        for command in INSTALLED:
            write(os.path.join(folder, command), portable_launcher(command, alone=True))


setup(
    scripts=["cli/lava-python"],
    data_files=[
        (f"share/lava/{folder}", [f"docs/{folder}/{name}" for name in sorted(os.listdir(f"docs/{folder}"))])
        for folder in ("systemd", "monitoring")
    ],
    cmdclass={"install_scripts": InstallScripts, "install_data": InstallData},
)

"""What pyproject.toml cannot say of a wheel: its commands, which are made from ``proto/commands.py`` as the wheel is built.

They go into the scripts' folder, and again into lib/lava/bin below the same prefix, where nothing else lies. Where a C compiler
is, those of NATIVE are an executable, the starter has a library, and the wheel is of this kind of machine (``cli/native``).
"""

from __future__ import annotations

import os
import sys

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel, get_platform
from setuptools.dist import Distribution

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cli import manpages
from cli.install_commands import ALONE, PLAIN, SERVER, portable_launcher, write
from cli.native.build import LIBRARY, built, built_library
from proto.commands import INSTALLED, NATIVE

_build_py = Distribution().get_command_class("build_py")
_install_scripts = Distribution().get_command_class("install_scripts")
_install_data = Distribution().get_command_class("install_data")
executable = built(ways=((),))


class BuildPy(_build_py):
    """The starter's library lies beside the modules."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        path = os.path.join(self.build_lib, LIBRARY)
        if (library := built_library(os.path.dirname(os.path.abspath(__file__)))) is not None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write(path, library)
        elif os.path.exists(path):  # of a former build in this folder
            os.unlink(path)


class InstallScripts(_install_scripts):
    """``cli/lava-python``, whose first line the installer sets to its interpreter, and the commands, which read it."""

    def run(self) -> None:
        super().run()
        os.makedirs(self.install_dir, exist_ok=True)
        for command in INSTALLED:
            write(os.path.join(self.install_dir, command), _content(command, alone=False))


class InstallData(_install_data):
    """The units, the folder of commands that goes into PATH, and the plain form of native ones."""

    def run(self) -> None:
        super().run()
        folder = os.path.join(self.install_dir, ALONE)
        os.makedirs(folder, exist_ok=True)
        for command in INSTALLED:
            write(os.path.join(folder, command), _content(command, alone=True))
        for prefix in (self.install_dir, os.path.dirname(folder)):
            manpages.write(os.path.join(prefix, manpages.SECTION))
        if executable is not None:
            folder = os.path.join(self.install_dir, PLAIN)
            os.makedirs(folder, exist_ok=True)
            for command in (SERVER, *NATIVE):
                write(os.path.join(folder, command), portable_launcher(command, alone=True))


class Wheel(bdist_wheel):
    """Any Python's, but of this machine's kind where it holds an executable or the library."""

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        plain = executable is None and not os.path.exists(os.path.join(self.bdist_dir or "", LIBRARY))
        return python, abi, platform if plain else get_platform(self.bdist_dir)


def _content(command: str, alone: bool) -> str | bytes:
    return executable if executable is not None and command in NATIVE else portable_launcher(command, alone)


setup(
    scripts=["cli/lava-python"],
    data_files=[
        (f"share/lava/{folder}", [f"docs/{folder}/{name}" for name in sorted(os.listdir(f"docs/{folder}"))])
        for folder in ("systemd", "monitoring")
    ],
    cmdclass={"build_py": BuildPy, "install_scripts": InstallScripts, "install_data": InstallData, "bdist_wheel": Wheel},
)

"""A cluster in memory that has read a site's files: what a parameter does, from its text to who runs where."""

from __future__ import annotations

from pathlib import Path

from config.read.load import load
from lavad.configure.resolve import resolve
from tests.support.worlds.world import World


def read_site(folder: Path, **files: str) -> tuple[World, list[str]]:
    """(the cluster, what is wrong with the files as ``file:line: text``). ``files``: name with ``__`` for the dot."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    loaded = load(str(folder))
    world = World()
    world.configure(resolve(loaded.config))
    return world, [f"{Path(problem.file).name}:{problem.line}: {problem.text}" for problem in loaded.problems]


def site_world(folder: Path, **files: str) -> World:
    """As ``read_site``, of files without a fault."""
    world, problems = read_site(folder, **files)
    assert problems == []
    return world

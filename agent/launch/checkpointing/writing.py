"""Generations that lava itself writes: begun where there is room, committed with a manifest by a rename, older ones removed.

Rule: a generation that is there is whole; whatever goes wrong is one line and leaves older generations alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator

from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.starter.part import generations
from agent.starter.part.generations import MANIFEST

COMMAND_FILE = ".restart_cmd"
"""What erestart writes into the generation: ``LSB_RESTART_CMD=command``."""
SPARE = 1.2
"""A checkpoint is begun where so many times the size of the last one is free."""
_ANY = re.compile(r"gen-([0-9]{1,9})(\..*)?")
_CHUNK = 4 << 20


def make(asked: Asked, name: str, write: Callable[[str], dict[str, object]]) -> tuple[int, int]:
    """(number, bytes) of a new generation; CheckpointError or OSError: there is none, and nothing of it is left.

    ``write`` fills the folder that it is given, and says what else the manifest is to tell; ``name``: of the program that does.
    """
    whole = generations.numbers(asked.folder)
    number = 1 + max((int(match[1]) for name in os.listdir(asked.folder) if (match := _ANY.fullmatch(name))), default=0)
    for left in os.listdir(asked.folder):
        if _ANY.fullmatch(left) and left.endswith(".tmp"):
            shutil.rmtree(os.path.join(asked.folder, left), ignore_errors=True)
    _check_space(asked.folder, whole)
    path = os.path.join(asked.folder, f"gen-{number}")
    unfinished = path + ".tmp"
    os.mkdir(unfinished)
    try:
        told = write(unfinished)
        size = _commit(asked, number, unfinished, path, name, told)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    for old in generations.numbers(asked.folder)[asked.kept :]:
        shutil.rmtree(os.path.join(asked.folder, f"gen-{old}"), ignore_errors=True)
    return number, size


def newest(folder: str) -> int:
    """The generation that a restart goes on from, 0: there is none."""
    return next(iter(generations.numbers(folder)), 0)


def check_like(asked: Asked, number: int) -> dict[str, object]:
    """The manifest of a generation; CheckpointError where another method or type of host made it."""
    made = generations.manifest(os.path.join(asked.folder, f"gen-{number}"))
    for key, here, what in (("method", asked.method, "by method"), ("machine", platform.machine(), "on a host of type")):
        there = made.get(key, "app" if key == "method" else here)
        if there != here:
            raise CheckpointError(f"checkpoint generation {number} was made {what} {there}, not {here}")
    return made


def _check_space(folder: str, whole: list[int]) -> None:
    """CheckpointError where there is too little room for another one like the last."""
    if not whole:
        return
    size = generations.listed_size(os.path.join(folder, f"gen-{whole[0]}"))
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < size * SPARE:
        mb = 1 << 20
        need = f"{size * SPARE / mb:.0f} MB are needed, {SPARE} times generation {whole[0]}"
        raise CheckpointError(f"{folder} has {free / mb:.0f} MB free, and {need}")


def _commit(asked: Asked, number: int, unfinished: str, path: str, name: str, told: dict[str, object]) -> int:
    """Write the manifest and rename the folder; the bytes of its files."""
    if os.path.lexists(os.path.join(unfinished, MANIFEST)):
        raise CheckpointError(f"{name} wrote a file {MANIFEST}, which is lava's own")
    files = {name: {"size": size, "sha256": digest} for name, size, digest in _synced(unfinished)}
    if not files:
        raise CheckpointError(f"{name} ended well and wrote no file into {unfinished}")
    made = {
        "generation": number,
        "files": files,
        "method": asked.method,
        "machine": platform.machine(),
        "host": os.environ.get("LAVA_HOST", ""),
        "at": int(time.time()),
        **told,
    }
    with open(os.path.join(unfinished, MANIFEST), "w", encoding="utf-8") as file:
        json.dump(made, file)
        file.flush()
        os.fsync(file.fileno())
    for folder, _, _ in os.walk(unfinished):
        sync_folder(folder)
    os.rename(unfinished, path)
    sync_folder(asked.folder)
    return sum(int(str(facts["size"])) for facts in files.values())


def _synced(unfinished: str) -> Iterator[tuple[str, int, str]]:
    """(path in the generation, size, SHA-256) of each plain file, which is on disk then. Links are kept unchecked."""
    for folder, _, names in os.walk(unfinished):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if name == COMMAND_FILE or not stat.S_ISREG(os.lstat(path).st_mode):
                continue
            total, size = hashlib.sha256(), 0
            with open(path, "rb", buffering=0) as file:
                while chunk := file.read(_CHUNK):
                    total.update(chunk)
                    size += len(chunk)
                os.fsync(file.fileno())
            yield os.path.relpath(path, unfinished), size, total.hexdigest()


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

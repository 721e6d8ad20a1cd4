"""The form of a copy of a generation, in a folder that hosts share or in one of the host that holds it for others.

A copy of generation N is the folder ``gen-N``, which a rename made: one compressed archive, and a MANIFEST with its size and
SHA-256, its number among the copies of its job, and when the generation was made.

Rule: a copy that is there is whole; one that is not whole is never left behind.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from typing import Protocol

from agent.launch.checkpointing.asked import Asked, CheckpointError, WrongHosts
from agent.launch.checkpointing.writing import sync_folder
from agent.starter.part import generations
from agent.starter.part.generations import MANIFEST

ARCHIVE = "generation.tar.gz"
LARGEST = 1 << 63
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW

Facts = dict[str, object]
"""What the manifest of a copy says."""


class Source(Protocol):
    """What an archive is read from."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes, b"" at the end."""


class Target(Protocol):
    """What an archive is written to."""

    def write(self, data: bytes, /) -> object:
        """All of it."""

    def flush(self) -> object:
        """What was kept back."""


class Hashed:
    """A file whose bytes are counted and hashed as they are read or written. An error of reading names ``path``."""

    def __init__(self, source: Source | None = None, target: Target | None = None, path: str = "") -> None:
        self._source = source
        self._target = target
        self._path = path
        self.digest = hashlib.sha256()
        self.size = 0

    def _seen(self, data: bytes) -> None:
        self.digest.update(data)
        self.size += len(data)

    def write(self, data: bytes) -> int:
        """All of it."""
        assert self._target is not None
        self._seen(data)
        self._target.write(data)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes."""
        assert self._source is not None
        try:
            data = self._source.read(size)
        except OSError as e:
            raise type(e)(e.errno, e.strerror, self._path) from None
        self._seen(data)
        return data

    def flush(self) -> None:
        """What was kept back goes on."""
        if self._target is not None:
            self._target.flush()

    def listed(self) -> Facts:
        """As a manifest names a file."""
        return {"size": self.size, "sha256": self.digest.hexdigest()}


def facts_of(path: str) -> Facts:
    """What the manifest of a copy says, {} where there is none."""
    try:
        return generations.manifest(path)
    except (OSError, ValueError):
        return {}


def number_in(facts: Facts, name: str) -> int:
    """A number that a manifest names; 0: it does not, or one that no file can have."""
    found = facts.get(name)
    return found if isinstance(found, int) and -LARGEST <= found < LARGEST else 0


def archive_in(facts: Facts) -> Facts:
    """Size and SHA-256 of the archive; {} where the manifest names none."""
    files = facts.get("files")
    listed = files.get(ARCHIVE) if isinstance(files, dict) else None
    return listed if isinstance(listed, dict) else {}


def all_in(folder: str) -> dict[int, Facts]:
    """What is told of all copies in a folder, by the number of their generation."""
    return {number: facts_of(os.path.join(folder, f"gen-{number}")) for number in generations.numbers(folder)}


def latest_first(found: dict[int, Facts]) -> list[int]:
    """The copies, the last one first, whatever the numbers of their generations."""
    counted = ((number_in(facts, "copy"), number) for number, facts in found.items() if "made" in facts)
    return [number for _, number in sorted(counted, reverse=True)]


def drop_unfinished(folder: str) -> None:
    """Remove what was begun there and not ended."""
    for left in os.listdir(folder):
        if left.startswith("gen-") and left.endswith(".tmp"):
            shutil.rmtree(os.path.join(folder, left), ignore_errors=True)


def begin(folder: str, number: int) -> str:
    """A new folder for a copy; what others have begun there and not ended is removed."""
    drop_unfinished(folder)
    unfinished = os.path.join(folder, f"gen-{number}.tmp")
    os.mkdir(unfinished, 0o700)
    return unfinished


def write_manifest(unfinished: str, number: int, files: Facts, told: Facts) -> None:
    """Write the manifest of a copy, and have the disk take its folder."""
    with open(os.path.join(unfinished, MANIFEST), "w", encoding="utf-8") as file:
        json.dump({"generation": number, "files": files, **told}, file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(unfinished)


def commit(folder: str, number: int, unfinished: str, files: Facts, told: Facts) -> None:
    """Write the manifest and rename the folder; a copy of this number that is no longer so goes away."""
    copies = 1 + max((number_in(facts, "copy") for facts in all_in(folder).values()), default=0)
    write_manifest(unfinished, number, files, {**told, "copy": copies})
    target = os.path.join(folder, f"gen-{number}")
    old = target + ".old.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.rename(target, old)
    os.rename(unfinished, target)
    sync_folder(folder)
    shutil.rmtree(old, ignore_errors=True)


def keep(folder: str, numbers: list[int], kept: int) -> None:
    """Remove all but the first ``kept`` of these."""
    for old in numbers[kept:]:
        shutil.rmtree(os.path.join(folder, f"gen-{old}"), ignore_errors=True)


def check_hosts(facts: Facts, asked: Asked, number: int) -> None:
    """WrongHosts where a copy was made on other slots of hosts; a job on one host may have any."""
    made = facts.get("slots")
    if made == asked.slots or (made is None and not asked.slots):
        return
    ours = "one host" if not asked.slots else f"{len(asked.slots)} hosts with {_counted(asked.slots)} slots"
    theirs = "one host" if not isinstance(made, list) else f"{len(made)} hosts with {_counted(made)} slots"
    raise WrongHosts(f"generation {number} is of {theirs}, and the job has {ours}: a restart needs the same")


def _counted(slots: list[int]) -> str:
    return " ".join(map(str, slots[:16])) + (" ..." if len(slots) > 16 else "")


def bytes_in(folder: str) -> int:
    """The bytes of the files in a folder and those below it; what goes away meanwhile does not count."""
    found = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found += os.lstat(os.path.join(where, name)).st_size
    return found


def check_space(folder: str, size: int, what: str) -> None:
    """CheckpointError where there is too little room."""
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < size:
        mb = 1 << 20
        raise CheckpointError(f"{folder} has {free / mb:.0f} MB free, and {what} needs {size / mb:.0f} MB")

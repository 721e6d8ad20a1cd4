"""Checkpoint generations in a job's folder: which are whole, as their manifests say, and setting aside those that are not.

A generation N is the folder ``gen-N``, which a rename made, with its MANIFEST: a JSON object whose ``files`` has the size of each
file, and its SHA-256 where the program writes one. Only what agrees with its manifest counts.
Before a job starts again this file is run as a program, by itself, as the job's user: ``generations.py FOLDER MOST``.

Rule: a shepherd that is the job's user looks; what a job wrote is read as data, and nothing in it is followed out of its folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping

MANIFEST = "MANIFEST"
HOLDERS = "LAVA_COPIES"
"""The variable with the hosts that hold copies of a job's generations, and their tokens: of what runs before its tasks alone."""
DAMAGED = ".damaged"
"""Ends the name of a generation that was set aside."""
MOST_MANIFEST = 16 << 20
MOST_FILES = 1_000_000
GENERATION = re.compile(r"gen-([0-9]{1,9})")
_CHUNK = 4 << 20
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def numbers(folder: str) -> list[int]:
    """The generations that have a manifest, newest first; OSError when the folder cannot be read."""
    names = (match for name in os.listdir(folder) if (match := GENERATION.fullmatch(name)))
    return sorted((int(match[1]) for match in names if os.path.lexists(os.path.join(folder, match[0], MANIFEST))), reverse=True)


def check(path: str) -> tuple[int, str]:
    """(bytes of the files of a generation, what is wrong with it; "": it is whole)."""
    size = 0
    try:
        for name, wanted, digest in _listed(path):
            why = _why_not(os.path.join(path, name), wanted, digest)
            if why:
                return size, f"file {name} {why}"
            size += wanted
    except (OSError, ValueError) as e:
        return size, f"{MANIFEST}: {getattr(e, 'strerror', None) or e}"
    return size, ""


def set_aside(folder: str, most: int = -1) -> tuple[int, list[str]]:
    """Make the newest whole generation, at most ``most`` (-1: any), the newest in the folder: (its number, what was set aside).

    A generation that is newer, or damaged, gets another name; nothing is removed. The number is -1 when there is none.
    """
    told: list[str] = []
    for number in numbers(folder):
        path = os.path.join(folder, f"gen-{number}")
        why = f"the job goes back to generation {most}" if 0 <= most < number else check(path)[1]
        if not why:
            return number, told
        told.append(f"generation {number}: {why}")
        rename_aside(path)
    return -1, told


def rename_aside(path: str) -> None:
    """Give a generation a name by which it no longer counts."""
    target = path + DAMAGED
    for copy in range(100):
        with contextlib.suppress(OSError):
            os.rename(path, f"{target}.{copy}" if copy else target)
            break


def differs(path: str, files: Mapping[str, tuple[int, str]]) -> str:
    """How files, each with its size and SHA-256, are not those of a generation's manifest; "" where they are."""
    try:
        for name, size, digest in _listed(path):
            found = files.get(os.path.normpath(name))
            if found is None:
                return f"file {name} is not there"
            if found[0] != size:
                return f"file {name} has {found[0]} bytes, and {size} in the manifest"
            if digest and found[1] != digest.lower():
                return f"file {name} has another SHA-256 than the manifest"
    except (OSError, ValueError) as e:
        return f"{MANIFEST}: {getattr(e, 'strerror', None) or e}"
    return ""


def manifest(path: str) -> dict[str, object]:
    """What the manifest of a generation says; ValueError or OSError where there is none."""
    try:
        found = json.loads(_read(os.path.join(path, MANIFEST)))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it lists no files")
    return found


def listed_size(path: str) -> int:
    """The bytes of a generation as its manifest has them; 0: it says nothing."""
    try:
        return sum(size for _, size, _ in _listed(path))
    except (OSError, ValueError):
        return 0


def _listed(path: str) -> Iterator[tuple[str, int, str]]:
    """(name, size, SHA-256 or "") of each file of a manifest; ValueError where it is none."""
    files = manifest(path).get("files")
    if not isinstance(files, dict) or len(files) > MOST_FILES:
        raise ValueError("it lists no files")
    for name, facts in files.items():
        size = facts.get("size") if isinstance(facts, dict) else None
        digest = facts.get("sha256", "") if isinstance(facts, dict) else ""
        if not isinstance(size, int) or size < 0 or not isinstance(digest, str):
            raise ValueError(f"it does not say how large {name!r} is")
        if name.startswith("/") or "\0" in name or ".." in name.split("/"):
            raise ValueError(f"it names {name!r}, outside of the generation")
        yield name, size, digest


def _read(path: str) -> bytes:
    fd = os.open(path, _FLAGS)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_MANIFEST:
            raise ValueError("it is no file of a manifest's size")
        return os.read(fd, MOST_MANIFEST)
    finally:
        os.close(fd)


def _why_not(path: str, size: int, digest: str) -> str:
    """Why a file is not the one of the manifest; "": it is."""
    try:
        fd = os.open(path, _FLAGS)
    except OSError as e:
        return f"cannot be read: {e.strerror}"
    with os.fdopen(fd, "rb", buffering=0) as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return "is no plain file"
        if found.st_size != size:
            return f"has {found.st_size} bytes, and {size} in the manifest"
        if not digest:
            return ""
        total = hashlib.sha256()
        try:
            while chunk := file.read(_CHUNK):
                total.update(chunk)
        except OSError as e:
            return f"cannot be read: {e.strerror}"
        return "" if total.hexdigest() == digest.lower() else "has another SHA-256 than the manifest"


def main(folder: str, most: str) -> int:
    """Set aside what a restart must not find; the exit status."""
    try:
        _, told = set_aside(folder, int(most))
    except OSError as e:
        sys.stderr.write(f"checkpoints: {folder}: {e.strerror}\n")
        return 1
    sys.stderr.writelines(f"checkpoints: {line}\n" for line in told)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Copies of generations in a folder that every host sees, for a job whose own checkpoint folder is on one host's disk.

A copy of generation N is the folder ``gen-N``, which a rename made: one compressed archive, and a MANIFEST with its size and
SHA-256, the job it is of, the how manieth copy it is, and when the generation was made. The last copy counts, whatever the number
of its generation: a host that goes on from an older one gives numbers again, and the clocks of hosts differ.

Rule: a copy that is there is whole; whatever goes wrong is one line and leaves the job's own generations and older copies alone.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO

from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.writing import SPARE, newest, sync_folder
from agent.starter.part import generations
from agent.starter.part.generations import MANIFEST

ARCHIVE = "generation.tar.gz"
LEVEL = 1
"""Of zlib: staging is to keep up with the job's checkpoints, on a fraction of one processor."""
_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def stage(asked: Asked) -> tuple[int, int]:
    """(number, bytes of its archive) of the generation ``asked.generation``, which is whole in the shared folder then."""
    number = asked.generation
    target = os.path.join(asked.stage, f"gen-{number}")
    with _held(asked.folder, number) as source:
        made = _made(source)
        there = _facts(target)
        if there.get("made") == made and there.get("of") == asked.stamp:
            return number, generations.listed_size(target)
        for left in os.listdir(asked.stage):
            if left.startswith("gen-") and left.endswith(".tmp"):
                shutil.rmtree(os.path.join(asked.stage, left), ignore_errors=True)
        size = generations.listed_size(source)
        _check_space(asked.stage, _expected(asked, size), f"the copy of generation {number}")
        unfinished = target + ".tmp"
        os.mkdir(unfinished)
        try:
            packed, digest = _pack(source, os.path.join(unfinished, ARCHIVE), number)
            copies = 1 + max((_number(facts, "copy") for facts in _copies(asked).values()), default=0)
            told = {"made": made, "of": asked.stamp, "copy": copies, "bytes": size, "host": os.environ.get("LAVA_HOST", "")}
            _commit(asked, number, unfinished, {"generation": number, "files": {ARCHIVE: digest}, **told})
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    for old in _own(asked)[asked.kept :]:
        shutil.rmtree(os.path.join(asked.stage, f"gen-{old}"), ignore_errors=True)
    return number, packed


def fetch(asked: Asked) -> None:
    """Before a job starts again: its newest generation is in its own folder, verified; a damaged copy is set aside.

    CheckpointError or OSError where the job must not start here: there is a newer copy, and it cannot be brought.
    """
    for number in _own(asked):
        copy = os.path.join(asked.stage, f"gen-{number}")
        if 0 <= asked.most < number:
            generations.rename_aside(copy)
            continue
        here = newest(asked.folder)
        # what a job makes after a copy has a higher number; one of before that was never copied may have, too
        if here >= number and _made(os.path.join(asked.folder, f"gen-{here}")) >= _number(_facts(copy), "made"):
            return
        why = _bring(asked, number, copy)
        if not why:
            return
        generations.rename_aside(copy)


def _bring(asked: Asked, number: int, copy: str) -> str:
    """Unpack a copy into the job's folder; why it is damaged, "" where it is not."""
    facts = _facts(copy)
    files = facts.get("files")
    listed = files.get(ARCHIVE) if isinstance(files, dict) else None
    if not isinstance(listed, dict):
        return "its manifest names no archive"
    _check_space(asked.folder, _number(facts, "bytes"), f"generation {number} of {asked.stage}")
    path = os.path.join(asked.folder, f"gen-{number}")
    unfinished = path + ".tmp"
    shutil.rmtree(unfinished, ignore_errors=True)
    os.mkdir(unfinished)
    try:
        digest = _unpack(os.path.join(copy, ARCHIVE), unfinished)
        why = "" if digest == listed.get("sha256") else "its archive has another SHA-256 than its manifest"
        why = why or generations.check(unfinished)[1]
        made = _number(facts, "made")
        os.utime(os.path.join(unfinished, MANIFEST), ns=(made, made))
    except (tarfile.TarError, zlib.error, EOFError, ValueError, gzip.BadGzipFile, FileNotFoundError) as e:
        why = str(e)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    if why:
        shutil.rmtree(unfinished, ignore_errors=True)
        return why
    for other in generations.numbers(asked.folder):
        if other >= number:  # the program takes the one with the highest number
            generations.rename_aside(os.path.join(asked.folder, f"gen-{other}"))
    os.rename(unfinished, path)
    return ""


def _own(asked: Asked) -> list[int]:
    """The copies of this job's generations, the last first: job numbers begin again with a new store."""
    own = [
        (_number(facts, "copy"), number)
        for number, facts in _copies(asked).items()
        if "made" in facts and (not asked.stamp or facts.get("of") == asked.stamp)
    ]
    return [number for _, number in sorted(own, reverse=True)]


def _copies(asked: Asked) -> dict[int, dict[str, object]]:
    """What is told of all copies that are there, by the number of their generation."""
    return {number: _facts(os.path.join(asked.stage, f"gen-{number}")) for number in generations.numbers(asked.stage)}


def _number(facts: dict[str, object], name: str) -> int:
    found = facts.get(name)
    return found if isinstance(found, int) else 0


def _facts(path: str) -> dict[str, object]:
    """What the manifest of a copy says, {} where there is none."""
    try:
        return generations.manifest(path)
    except (OSError, ValueError):
        return {}


def _made(path: str) -> int:
    """When a generation was made: nanoseconds of the epoch, of its manifest. A copy keeps it."""
    return os.lstat(os.path.join(path, MANIFEST)).st_mtime_ns


def _expected(asked: Asked, size: int) -> int:
    """The bytes of a copy: compressed like the one before, where there is one."""
    for number in _own(asked)[:1]:
        path = os.path.join(asked.stage, f"gen-{number}")
        before = _number(_facts(path), "bytes")
        if before:
            size = size * generations.listed_size(path) // before
    return int(size * SPARE)


def _check_space(folder: str, size: int, what: str) -> None:
    found = os.statvfs(folder)
    free = found.f_bavail * found.f_frsize
    if free < size:
        mb = 1 << 20
        raise CheckpointError(f"{folder} has {free / mb:.0f} MB free, and {what} needs {size / mb:.0f} MB")


@contextlib.contextmanager
def _held(folder: str, number: int) -> Iterator[str]:
    """The generation under another name, by hard links: the program may remove its own meanwhile. Without links: itself."""
    source, held = os.path.join(folder, f"gen-{number}"), os.path.join(folder, ".staging")
    shutil.rmtree(held, ignore_errors=True)
    try:
        shutil.copytree(source, held, symlinks=True, copy_function=os.link)
    except FileNotFoundError:
        raise CheckpointError(f"generation {number} was removed before it was copied") from None
    except (OSError, shutil.Error):
        shutil.rmtree(held, ignore_errors=True)
        held = source
    try:
        yield held
    finally:
        if held != source:
            shutil.rmtree(held, ignore_errors=True)


class _Hashed:
    """A file whose bytes are counted and hashed as they are read or written. An error of reading names it."""

    def __init__(self, file: IO[bytes], path: str = "") -> None:
        self._file = file
        self._path = path
        self.digest = hashlib.sha256()
        self.size = 0

    def _seen(self, data: bytes) -> None:
        self.digest.update(data)
        self.size += len(data)

    def write(self, data: bytes) -> int:
        """All of it."""
        self._seen(data)
        return self._file.write(data)

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes."""
        try:
            data = self._file.read(size)
        except OSError as e:
            raise OSError(e.errno, e.strerror, self._path) from None
        self._seen(data)
        return data

    def flush(self) -> None:
        """Nothing is kept back here."""
        self._file.flush()


def _pack(source: str, path: str, number: int) -> tuple[int, dict[str, object]]:
    """(bytes, size and SHA-256 for a manifest) of an archive of a generation, whose files agree with its manifest."""
    with os.fdopen(os.open(path, _NEW, 0o600), "wb") as file:
        out = _Hashed(file)
        with gzip.GzipFile("", "wb", LEVEL, out, 0) as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
            digests = _add_all(archive, source)
        file.flush()
        os.fsync(file.fileno())
    why = generations.differs(source, digests)
    if why:
        raise CheckpointError(f"generation {number} is damaged: {why}")
    return out.size, {"size": out.size, "sha256": out.digest.hexdigest()}


def _add_all(archive: tarfile.TarFile, source: str) -> dict[str, tuple[int, str]]:
    """Add files, folders and links; (size, SHA-256) of each plain file by its path. A file with two names is there twice."""
    found: dict[str, tuple[int, str]] = {}
    for folder, folders, names in os.walk(source):
        for name in sorted(folders + names):
            path = os.path.join(folder, name)
            info = archive.gettarinfo(path, os.path.relpath(path, source))
            if not stat.S_ISREG(os.lstat(path).st_mode):
                if info is not None and (info.isdir() or info.issym()):
                    archive.addfile(info)
                continue
            with os.fdopen(os.open(path, _READ), "rb", buffering=0) as file:
                seen = _Hashed(file, path)
                info.type, info.linkname, info.size = tarfile.REGTYPE, "", os.fstat(file.fileno()).st_size
                archive.addfile(info, seen)
                found[info.name] = seen.size, seen.digest.hexdigest()
    return found


def _unpack(path: str, folder: str) -> str:
    """Files, folders and links of an archive into an empty folder, and the archive's SHA-256. Nothing gets out of the folder."""
    links: list[tuple[str, str]] = []
    with os.fdopen(os.open(path, _READ), "rb", buffering=0) as file:
        seen = _Hashed(file, path)
        with gzip.GzipFile(fileobj=seen, mode="rb") as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            for member in archive:
                if member.name.startswith("/") or ".." in member.name.split("/"):
                    raise ValueError(f"its archive names {member.name!r}, outside of the generation")
                name = os.path.join(folder, member.name)
                if member.isdir():
                    os.makedirs(name, exist_ok=True)
                elif member.issym():
                    links.append((member.linkname, name))
                elif (data := archive.extractfile(member)) is not None:
                    with os.fdopen(os.open(name, _NEW, member.mode & 0o777), "wb") as target:
                        shutil.copyfileobj(data, target, _CHUNK)
        while seen.read(_CHUNK):
            pass
    for to, name in links:
        os.symlink(to, name)
    return seen.digest.hexdigest()


def _commit(asked: Asked, number: int, unfinished: str, told: dict[str, object]) -> None:
    """Write the manifest and rename the folder; a copy of this number that is no longer so goes away."""
    with open(os.path.join(unfinished, MANIFEST), "w", encoding="utf-8") as file:
        json.dump(told, file)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(unfinished)
    target = os.path.join(asked.stage, f"gen-{number}")
    old = target + ".old.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.rename(target, old)
    os.rename(unfinished, target)
    sync_folder(asked.stage)
    shutil.rmtree(old, ignore_errors=True)

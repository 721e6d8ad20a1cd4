"""Copies of generations of a job whose own checkpoint folder is on one host's disk: in a folder that every host sees, or on
another host that holds them.

The last copy counts, whatever the number of its generation: a host that goes on from an older one gives numbers again, and the
clocks of hosts differ.

Rule: whatever goes wrong is one line and leaves the job's own generations and older copies alone.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import stat
import sys
import tarfile
import time
import zlib
from collections.abc import Iterator
from typing import IO, cast

from agent.launch.checkpointing import copies, holder
from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.copies import ARCHIVE, NEW, Facts, Hashed, Source, Target, check_space, number_in
from agent.launch.checkpointing.holder import Holder, HolderError
from agent.launch.checkpointing.writing import SPARE, newest
from agent.starter.part import generations
from agent.starter.part.generations import MANIFEST

LEVEL = 1
"""Of zlib: staging is to keep up with the job's checkpoints, on a fraction of one processor."""
PAUSE = 2.0
"""Seconds until a host that does not answer is asked again."""
_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
HEADERS = 1 << 30
"""Bytes that an archive may have beside those of files: up to 1 KiB for each of as many as a manifest lists."""
_OF_THE_ARCHIVE = (FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError)
"""Errors in a new folder that come of what an archive names, not of the disk."""


def stage(asked: Asked) -> tuple[int, int]:
    """(number, bytes of its archive) of the generation ``asked.generation``, whose copy is whole then."""
    with held(asked.folder, asked.generation) as source:
        if not asked.stage:
            return asked.generation, _push(asked, source)
        return asked.generation, _copy(asked, source)


def _copy(asked: Asked, source: str) -> int:
    number, made, target = asked.generation, made_at(source), os.path.join(asked.stage, f"gen-{asked.generation}")
    there = copies.facts_of(target)
    if there.get("made") == made and there.get("of") == asked.stamp:
        return generations.listed_size(target)
    size = size_of(source)
    before = next((there for one in own(asked)[:1] if (there := copies.facts_of(os.path.join(asked.stage, f"gen-{one}")))), {})
    check_space(asked.stage, expected(size, before), f"the copy of generation {number}")
    unfinished = copies.begin(asked.stage, number)
    try:
        packed = pack_into(unfinished, source, number)
        told = {"made": made, "of": asked.stamp, "bytes": size, "host": os.environ.get("LAVA_HOST", "")}
        copies.commit(asked.stage, number, unfinished, {ARCHIVE: packed.listed()}, told)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    copies.keep(asked.stage, own(asked), asked.kept)
    return packed.size


def pack_into(folder: str, source: str, number: int) -> Hashed:
    """Write the archive of a generation into a folder, whole on disk; what was written."""
    with os.fdopen(os.open(os.path.join(folder, ARCHIVE), NEW, 0o600), "wb") as file:
        packed = _pack(source, file, number)
        file.flush()
        os.fsync(file.fileno())
    return packed


def bring_from(asked: Asked, number: int, copy: str, facts: Facts) -> str:
    """Bring the archive in a folder into the job's own folder; why it is damaged, "" where it is not."""
    try:
        with os.fdopen(os.open(path := os.path.join(copy, ARCHIVE), _READ), "rb", buffering=0) as file:
            return _bring(asked, number, facts, Hashed(file, path=path), asked.stage)
    except FileNotFoundError:
        return "its archive is gone"


def _push(asked: Asked, source: str) -> int:
    """The copy is on the host that holds those of the job."""
    if not asked.holders:
        raise CheckpointError("no host was named that holds copies")
    told = {
        "generation": asked.generation,
        "made": made_at(source),
        "bytes": size_of(source),
        "host": os.environ.get("LAVA_HOST", ""),
        "kept": asked.kept,
    }
    with holder.putting(Holder(asked.holders[0]), told) as put:
        if put.there:
            return put.there
        packed = _pack(source, put, asked.generation)
        put.commit(packed.listed())
        return packed.size


def fetch(asked: Asked) -> None:
    """Before a job starts again: its newest generation is in its own folder, verified; a damaged copy is set aside.

    CheckpointError or OSError where the job must not start here: there is a newer copy, and it cannot be brought.
    """
    if not asked.stage:
        _pull(asked)
        return
    for number in own(asked):
        copy = os.path.join(asked.stage, f"gen-{number}")
        if 0 <= asked.most < number:
            generations.rename_aside(copy)
            continue
        facts = copies.facts_of(copy)
        copies.check_hosts(facts, asked, number)
        if _is_here(asked, number, facts) or not bring_from(asked, number, copy, facts):
            return
        generations.rename_aside(copy)


def _pull(asked: Asked) -> None:
    """The same from hosts that hold copies; a host that does not answer is waited for ``asked.patience`` seconds in all."""
    until = time.monotonic() + asked.patience
    wanted = [(number, one) for one in map(Holder, asked.holders) for number in one.generations]
    for number, one in sorted(wanted, key=_newest_first):
        if 0 <= asked.most < number:
            continue
        why = _pull_one(asked, number, one, until)
        if not why:
            return
        sys.stderr.write(f"checkpoints: generation {number} of host {one.host}: {why}\n")


def _newest_first(wanted: tuple[int, Holder]) -> int:
    return -wanted[0]


def _pull_one(asked: Asked, number: int, one: Holder, until: float) -> str:
    while True:
        try:
            with holder.getting(one, number) as got:
                if _is_here(asked, number, got.facts):
                    return ""
                return _bring(asked, number, got.facts, got, f"host {one.host}")
        except HolderError as e:
            if e.final or (time.monotonic() >= until and not e.busy):
                return str(e)
        time.sleep(PAUSE)


def _is_here(asked: Asked, number: int, facts: Facts) -> bool:
    """Whether the job's own folder has this generation or a later one."""
    here = newest(asked.folder)
    # what a job makes after a copy has a higher number; an earlier one that was never copied may have, too
    return here >= number and made_at(os.path.join(asked.folder, f"gen-{here}")) >= number_in(facts, "made")


def _bring(asked: Asked, number: int, facts: Facts, archive: Source, where: str) -> str:
    """Unpack a copy into the job's folder; why it is damaged, "" where it is not."""
    check_space(asked.folder, number_in(facts, "bytes"), f"generation {number} of {where}")
    path = os.path.join(asked.folder, f"gen-{number}")
    unfinished = path + ".tmp"
    shutil.rmtree(unfinished, ignore_errors=True)
    os.mkdir(unfinished)
    try:
        # what holds a copy may say less than its archive is unpacked to; an older one has not counted files that are not listed
        digest = _unpack(archive, unfinished, 2 * number_in(facts, "bytes") + HEADERS)
        why = "" if digest == copies.archive_in(facts).get("sha256") else "its archive has another SHA-256 than its manifest"
        why = why or generations.check(unfinished)[1]
        made = number_in(facts, "made")
        os.utime(os.path.join(unfinished, MANIFEST), ns=(made, made))
    except (tarfile.TarError, zlib.error, EOFError, ValueError, gzip.BadGzipFile, *_OF_THE_ARCHIVE) as e:
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


def own(asked: Asked) -> list[int]:
    """The copies of this job's generations, the last first: job numbers begin again with a new store."""
    found = copies.all_in(asked.stage)
    return copies.latest_first({n: facts for n, facts in found.items() if not asked.stamp or facts.get("of") == asked.stamp})


def made_at(path: str) -> int:
    """When a generation was made: nanoseconds of the epoch, of its manifest. A copy keeps it."""
    return os.lstat(os.path.join(path, MANIFEST)).st_mtime_ns


def size_of(source: str) -> int:
    """The bytes of a generation's files, at least those that its manifest has."""
    return max(copies.bytes_in(source), generations.listed_size(source))


def expected(size: int, before: Facts) -> int:
    """The bytes of a copy of a generation of ``size``: compressed like the one before, where there is one."""
    packed, whole = number_in(copies.archive_in(before), "size"), number_in(before, "bytes")
    return int((size * packed // whole if whole else size) * SPARE)


@contextlib.contextmanager
def held(folder: str, number: int) -> Iterator[str]:
    """The generation under another name, by hard links: the program may remove its own meanwhile. Without links: itself."""
    source, linked = os.path.join(folder, f"gen-{number}"), os.path.join(folder, ".staging")
    shutil.rmtree(linked, ignore_errors=True)
    try:
        shutil.copytree(source, linked, symlinks=True, copy_function=os.link)
    except FileNotFoundError:
        raise CheckpointError(f"generation {number} was removed before it was copied") from None
    except (OSError, shutil.Error):
        shutil.rmtree(linked, ignore_errors=True)
        linked = source
    try:
        yield linked
    finally:
        if linked != source:
            shutil.rmtree(linked, ignore_errors=True)


def _pack(source: str, target: Target, number: int) -> Hashed:
    """Write an archive of a generation, whose files agree with its manifest; what was written."""
    out = Hashed(target=target)
    with gzip.GzipFile("", "wb", LEVEL, out, 0) as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        digests = _add_all(archive, source)
    out.flush()
    why = generations.differs(source, digests)
    if why:
        raise CheckpointError(f"generation {number} is damaged: {why}")
    return out


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
                seen = Hashed(file, path=path)
                info.type, info.linkname, info.size = tarfile.REGTYPE, "", os.fstat(file.fileno()).st_size
                archive.addfile(info, seen)
                found[info.name] = seen.size, seen.digest.hexdigest()
    return found


class _Bounded:
    """What is unpacked, up to ``most`` bytes: zeros have a thousandth of their size in an archive."""

    def __init__(self, source: Source, most: int) -> None:
        self._source = source
        self._most = self._left = most

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes. ValueError where there are more in all."""
        data = self._source.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError(f"its archive has more than {self._most >> 20} MB, which is more than its manifest says")
        return data


def _bounded(source: Source, most: int) -> IO[bytes]:
    return cast("IO[bytes]", _Bounded(source, most))  # a stream is only read


def _unpack(packed: Source, folder: str, most: int) -> str:
    """Files, folders and links of an archive into an empty folder, and the archive's SHA-256. Nothing gets out of the folder.

    ``most``: bytes of what is unpacked; ValueError where there is more.
    """
    links: list[tuple[str, str]] = []
    seen = Hashed(packed)
    with gzip.GzipFile(fileobj=seen, mode="rb") as whole, tarfile.open(fileobj=_bounded(whole, most), mode="r|") as archive:
        for member in archive:
            if member.name.startswith("/") or ".." in member.name.split("/"):
                raise ValueError(f"its archive names {member.name!r}, outside of the generation")
            name = os.path.join(folder, member.name)
            if member.isdir():
                os.makedirs(name, exist_ok=True)
            elif member.issym():
                links.append((member.linkname, name))
            elif (data := archive.extractfile(member)) is not None:
                with os.fdopen(os.open(name, NEW, member.mode & 0o777), "wb") as target:
                    shutil.copyfileobj(data, target, _CHUNK)
    while seen.read(_CHUNK):
        pass
    # the deepest first, so that none is made below another, which may lead out of the folder
    for to, name in sorted(links, key=_depth, reverse=True):
        os.symlink(to, name)
    return seen.digest.hexdigest()


def _depth(link: tuple[str, str]) -> int:
    return os.path.normpath(link[1]).count("/")

"""Generations of a job on several hosts, each of which has a part of them on its own disk, in a folder that every host sees.

While hosts copy, ``gen-N.ATTEMPT.parts`` has a folder ``part-K`` for each part that is there: a copy like that of a job on one
host. K is the place of the host in the job, so that a restart brings part K to the K-th host, whichever that is. When all are
there, the first host adds a manifest that lists them, and renames the folder to ``gen-N``.

Rule: a generation is there with all of its parts or not at all; parts of two attempts are never mixed. All hosts of an attempt go
on from the generation that the first of them to look has named (``.restart-ATTEMPT``).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time

from agent.launch.checkpointing import copies, staging
from agent.launch.checkpointing.asked import Asked, CheckpointError
from agent.launch.checkpointing.copies import ARCHIVE, Facts, archive_in, check_space, facts_of, number_in
from agent.launch.checkpointing.writing import sync_folder
from agent.starter.part import generations

PAUSE = 0.5
"""Seconds until the first host looks again whether the other parts are there."""
SEEN_WITHIN = 60.0
"""Seconds after which a host sees what another one has made, at the latest: it may keep what it knows of a shared folder."""
_FAILED = ".failed"
"""Ends the name of a file that says why a part could not be copied."""
_PARTS = re.compile(r"gen-[0-9]+\..+\.parts|gen-.*\.tmp|\.restart-.+")
"""What attempts leave behind that ended meanwhile."""


def name_of(place: int) -> str:
    """The folder of a host's part, in the job's own folder and in a copy."""
    return f"part-{place}"


# -- copying -------------------------------------------------------------------------------------------------------------


def stage(asked: Asked) -> tuple[int, int]:
    """(number, bytes of the archives) of the generation ``asked.generation``: of this host's part, which is there then.

    On the first host of all parts: it waits for them, and commits the generation. CheckpointError where one could not be copied.
    """
    number, together = asked.generation, os.path.join(asked.stage, f"gen-{asked.generation}.{asked.attempt}.parts")
    own = os.path.join(together, name_of(asked.place))
    try:
        with staging.held(asked.folder, number) as source:
            made = staging.made_at(source)
            if _is_copy(facts_of(_part(asked, number)), asked, made):
                return number, generations.listed_size(os.path.join(asked.stage, f"gen-{number}"))
            if not asked.place:
                _remove_others(asked, together)
            os.makedirs(together, 0o700, exist_ok=True)
            if not _is_copy(facts_of(own), asked, made):
                _copy(asked, source, own, made)
        if asked.place:
            return number, generations.listed_size(own)
        _wait(asked, together)
    except SystemExit:  # it is given up
        if not asked.place:
            shutil.rmtree(together, ignore_errors=True)
        raise
    return number, _commit(asked, together)


def _is_copy(facts: Facts, asked: Asked, made: int) -> bool:
    """Whether it is this host's part, as it is on its disk now."""
    return facts.get("made") == made and facts.get("of") == asked.stamp and facts.get("attempt") == asked.attempt


def _remove_others(asked: Asked, together: str) -> None:
    for left in os.listdir(asked.stage):
        path = os.path.join(asked.stage, left)
        if not _PARTS.fullmatch(left) or path == together:
            continue
        if os.path.islink(path):
            os.unlink(path)
        else:
            shutil.rmtree(path, ignore_errors=True)


def _copy(asked: Asked, source: str, own: str, made: int) -> None:
    """Copy this host's part; where it fails a file says why, for the first host."""
    unfinished = own + ".tmp"
    for left in (unfinished, own):
        shutil.rmtree(left, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(own + _FAILED)
    try:
        size, number = staging.size_of(source), asked.generation
        before = next((facts_of(_part(asked, one)) for one in staging.own(asked)[:1]), {})
        check_space(asked.stage, staging.expected(size, before), f"the copy of generation {number}")
        os.mkdir(unfinished, 0o700)
        packed = staging.pack_into(unfinished, source, number)
        told = {"made": made, "of": asked.stamp, "bytes": size, "host": os.environ.get("LAVA_HOST", ""), "attempt": asked.attempt}
        copies.write_manifest(unfinished, number, {ARCHIVE: packed.listed()}, told)
        os.rename(unfinished, own)
        sync_folder(os.path.dirname(own))
    except BaseException as e:
        shutil.rmtree(unfinished, ignore_errors=True)
        if isinstance(e, (OSError, CheckpointError)):
            _say_why(own + _FAILED, str(e))
        raise


def _part(asked: Asked, number: int) -> str:
    return os.path.join(asked.stage, f"gen-{number}", name_of(asked.place))


def _say_why(path: str, why: str) -> None:
    with contextlib.suppress(OSError), open(path, "w", encoding="utf-8", errors="replace") as file:
        file.write(f"{os.environ.get('LAVA_HOST', '')}: {why}")


def _wait(asked: Asked, together: str) -> None:
    """Until every part is there. What ends a job, or its copy, ends the waiting, too."""
    missing = [os.path.join(together, name_of(place)) for place in range(len(asked.slots))]
    while missing := [path for path in missing if not facts_of(path)]:
        for path in missing:
            if os.path.exists(path + _FAILED):
                with open(path + _FAILED, encoding="utf-8", errors="replace") as file:
                    raise CheckpointError(f"{os.path.basename(path)} on host {file.read(1000) or '-'}")
        time.sleep(PAUSE)


def _commit(asked: Asked, together: str) -> int:
    """Make a generation of its parts; the bytes of their archives."""
    files: Facts = {}
    found = [facts_of(os.path.join(together, name_of(place))) for place in range(len(asked.slots))]
    for place, facts in enumerate(found):
        files[os.path.join(name_of(place), ARCHIVE)] = archive_in(facts)
    told = {
        "made": number_in(found[0], "made"),
        "of": asked.stamp,
        "bytes": sum(number_in(facts, "bytes") for facts in found),
        "slots": asked.slots,
        "hosts": [facts.get("host") for facts in found],
    }
    copies.commit(asked.stage, asked.generation, together, files, told)
    copies.keep(asked.stage, staging.own(asked), asked.kept)
    return sum(number_in(archive_in(facts), "size") for facts in found)


# -- going on ------------------------------------------------------------------------------------------------------------


def fetch(asked: Asked) -> None:
    """Before a job starts again: this host's part of the generation that all hosts go on from is in its folder, verified.

    What is newer there, and not there on all hosts, is set aside. CheckpointError or OSError where the job must not start here;
    where this host's part is damaged the generation is set aside in the shared folder: the next start takes the one before.
    """
    number = _chosen(asked)
    copy = os.path.join(asked.stage, f"gen-{number}")
    if number >= 0:
        facts = facts_of(copy)
        if not facts:
            raise CheckpointError(f"generation {number} is no longer in {asked.stage}: another host has found its part damaged")
        copies.check_hosts(facts, asked, number)
        if why := _bring(asked, number):
            generations.rename_aside(copy)
            raise CheckpointError(f"generation {number}: {name_of(asked.place)} is damaged: {why}")
    for other in generations.numbers(asked.folder):
        if other > number:
            generations.rename_aside(os.path.join(asked.folder, f"gen-{other}"))


def _bring(asked: Asked, number: int) -> str:
    """Why this host's part is damaged, "" where it is here now."""
    here, facts = os.path.join(asked.folder, f"gen-{number}"), facts_of(_part(asked, number))
    with contextlib.suppress(FileNotFoundError):
        if staging.made_at(here) == number_in(facts, "made") and not generations.check(here)[1]:
            return ""
    return staging.bring_from(asked, number, _part(asked, number), facts)


def _chosen(asked: Asked) -> int:
    """The generation that all hosts of this attempt go on from, -1: there is none. The first host that looks names it."""
    path, until = os.path.join(asked.stage, f".restart-{asked.attempt}"), time.monotonic() + SEEN_WITHIN
    while True:
        with contextlib.suppress(FileNotFoundError):
            return int(os.readlink(path))
        number = _newest(asked)
        with contextlib.suppress(FileExistsError):
            os.symlink(str(number), path)
            return number
        if time.monotonic() >= until:
            raise CheckpointError(f"{path}: another host has made it, and it is not seen here")
        time.sleep(PAUSE)


def _newest(asked: Asked) -> int:
    """The last generation that has all of its parts, whatever hosts it is of; one that has not is set aside."""
    for number in staging.own(asked):
        path = os.path.join(asked.stage, f"gen-{number}")
        if not 0 <= asked.most < number and _has_all(path):
            return number
        generations.rename_aside(path)
    return -1


def _has_all(path: str) -> bool:
    """Whether each archive of a copy is there in its size. What is in it is checked where it is brought to."""
    files = facts_of(path).get("files")
    if not isinstance(files, dict):
        return False
    try:
        return all(os.lstat(os.path.join(path, name)).st_size == number_in(said, "size") for name, said in files.items())
    except (OSError, AttributeError):
        return False

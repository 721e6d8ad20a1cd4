"""Checkpoints that a program writes itself, when lava asks for one (`bsub -k "DIR method=app"`, docs/checkpoint.md).

    from appcheckpoint import AppCheckpoint        # before mpi4py: it installs the signal's handler
    checkpoint = AppCheckpoint(MPI.COMM_WORLD)     # or AppCheckpoint() in a program without MPI
    found = checkpoint.newest()                    # what to go on from, or None
    while ...:
        if checkpoint.wanted():                    # every rank asks, at the same place
            checkpoint.save("part-of-this-rank", data, {"iteration": iteration})

Where each host has a folder of its own (`bsub -k "DIR stage"`, LAVA_CKPT_PART), each has its ranks' files and a manifest of them.
Rule: a folder `gen-N` exists only when it is whole. All calls are collective. The standard library is enough.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "MANIFEST"
KEPT = 2
"""Generations that stay: the newest, and the one before in case the newest turns out to be damaged."""

_asked = False


def _note(number: int, frame: object) -> None:
    global _asked
    _asked = True


def _signal_number() -> int:
    """LAVA_CKPT_SIGNAL: a number or a name (10, USR1, SIGUSR1)."""
    word = os.environ.get("LAVA_CKPT_SIGNAL") or "USR1"
    if word.isdigit():
        return int(word)
    return signal.Signals["SIG" + word.removeprefix("SIG")].value


signal.signal(_signal_number(), _note)


class _Alone:
    """A communicator of one, for programs without MPI."""

    rank, size = 0, 1

    def bcast(self, item: Any) -> Any:
        return item

    def allgather(self, item: Any) -> list[Any]:
        return [item]

    def Allreduce(self, mine: Any, total: Any) -> None:
        total[0] = mine[0]


@dataclass(frozen=True)
class Generation:
    """One whole checkpoint: its folder, the names of the files there, and the facts that were saved with it."""

    number: int
    folder: Path
    names: tuple[str, ...]
    facts: dict[str, Any]


class AppCheckpoint:
    """The protocol of lava's `app` method over the ranks of ``comm`` (mpi4py's, or None for a program of one process).

    ``folder``: the job's own checkpoint folder; LSB_CHKPNT_DIR when not given. Without either nothing is ever saved.
    ``part``: the place of this rank's host among those that have a folder of their own; LAVA_CKPT_PART when not given.
    """

    def __init__(self, comm: Any = None, folder: str | None = None, part: int | None = None) -> None:
        self.comm = comm or _Alone()
        name = folder or os.environ.get("LSB_CHKPNT_DIR", "")
        self.folder = Path(name) if name else None
        self._good: list[int] = []
        part = int(os.environ.get("LAVA_CKPT_PART") or 0) if part is None else part
        self._part = part
        parts = self.comm.allgather(part) if self.folder else [part]
        self.leads = parts.index(part) == self.comm.rank
        """This rank writes what is in its folder once: the manifest, and what all ranks have alike."""
        self._local = parts[: self.comm.rank].count(part), parts.count(part)
        """This rank among those of its folder, and how many these are."""

    def wanted(self) -> bool:
        """Has any rank been asked for a checkpoint since the last one?"""
        if self.folder is None:
            return False
        asked = array("i", [0])
        self.comm.Allreduce(array("i", [_asked]), asked)
        return asked[0] > 0

    def newest(self) -> Generation | None:
        """The newest whole generation, when this is a restart (LSB_RESTART=Y); a damaged one is passed over."""
        if self.folder is None or os.environ.get("LSB_RESTART") != "Y":
            return None
        known = [set(numbers) for numbers in self.comm.allgather(self._numbers()) if numbers is not None]
        for number in sorted(set.intersection(*known), reverse=True):
            found = self._verified(number)
            if found is not None:
                self._good = [number]
                return found
            self._say(f"generation {number} is damaged; the one before is used")
        return None

    def save(self, name: str, data: bytes | memoryview, facts: dict[str, Any]) -> bool:
        """Write the next generation: every rank its own file ``name``, then the manifests, then one rename in each folder.

        False, and a line on stderr, when a rank could not write (a full disk): the older generations stay.
        """
        global _asked
        assert self.folder is not None
        # A number that a folder has already is not used again, even where others have not got it.
        number = 1 + max(max(numbers, default=0) for numbers in self.comm.allgather(self._numbers()) if numbers is not None)
        partial = self.folder / f"gen-{number}.tmp"
        if not self._all(self._begin(partial)):
            _asked = False
            return False
        part = _write_part(partial, name, data)
        # A request that came so far is served by this one. Once the manifest is there, every rank hears the next.
        _asked = False
        written = self.comm.allgather({**part, "part": self._part})
        # lava looks into the first host's folder: a generation that is there is in each of the others.
        for first in (False, True):
            error = self._commit(number, partial, written, facts) if (self._part == 0) is first else ""
            if not self._all(error):
                shutil.rmtree(partial, ignore_errors=True)
                shutil.rmtree(self.folder / f"gen-{number}", ignore_errors=True)
                return False
        self._keep(number)
        return True

    def _all(self, error: str) -> bool:
        """Whether no rank has an error; one of them is told."""
        errors = [one for one in self.comm.allgather(error) if one]
        if errors:
            self._say(f"no checkpoint: {errors[0]}")
        return not errors

    def _begin(self, partial: Path) -> str:
        """Of one rank for each folder: make an empty one for the files; why that cannot be made."""
        if not self.leads:
            return ""
        assert self.folder is not None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for stale in self.folder.glob("gen-*.tmp"):
                shutil.rmtree(stale)
            partial.mkdir()
        except OSError as error:
            return str(error)
        return ""

    def _commit(self, number: int, partial: Path, written: list[dict[str, Any]], facts: dict[str, Any]) -> str:
        """Of one rank for each folder: the manifest, then the rename that makes the generation exist; why there is none."""
        for rank, part in enumerate(written):
            if "error" in part:
                return f"rank {rank}: {part['error']}"
        if not self.leads:
            return ""
        assert self.folder is not None
        try:
            files = {one["name"]: {"size": one["size"], "sha256": one["sha256"]} for one in written if one["part"] == self._part}
            manifest = {"generation": number, "files": files, **facts}
            _write_whole(partial / MANIFEST, json.dumps(manifest, indent=1).encode())
            _sync_folder(partial)
            partial.rename(self.folder / f"gen-{number}")
            _sync_folder(self.folder)
        except OSError as error:
            return str(error)
        return ""

    def _keep(self, number: int) -> None:
        """Of one rank for each folder: older generations go."""
        self._good = [*self._good, number][-KEPT:]
        for old in self._numbers() or ():
            if old not in self._good:
                assert self.folder is not None
                shutil.rmtree(self.folder / f"gen-{old}", ignore_errors=True)

    def _numbers(self) -> list[int] | None:
        """Of one rank for each folder: the generations there; None of the others, which need not see them yet."""
        if not self.leads or self.folder is None:
            return None
        words = [path.name.removeprefix("gen-") for path in self.folder.glob("gen-*")]
        return [int(word) for word in words if word.isdigit()]

    def _verified(self, number: int) -> Generation | None:
        """The generation if every file is as the manifest says; the ranks of a folder share the reading."""
        assert self.folder is not None
        folder = self.folder / f"gen-{number}"
        try:
            manifest = json.loads((folder / MANIFEST).read_bytes())
            names = tuple(sorted(manifest["files"]))
            mine = names[self._local[0] :: self._local[1]]
            right = all(_is_as_written(folder / name, manifest["files"][name]) for name in mine)
        except (OSError, ValueError, KeyError, TypeError):
            names, manifest, right = (), {}, False
        if not all(self.comm.allgather(right)):
            return None
        facts = {key: value for key, value in manifest.items() if key not in ("generation", "files")}
        return Generation(number, folder, names, facts)

    def _say(self, line: str) -> None:
        if self.comm.rank == 0:
            print(f"checkpoint: {line}", file=sys.stderr, flush=True)


def _write_part(partial: Path, name: str, data: bytes | memoryview) -> dict[str, Any]:
    """One rank's file, and its line of the manifest; an error is told, not raised: the other ranks wait."""
    try:
        _write_whole(partial / name, data)
    except OSError as error:
        return {"error": str(error)}
    return {"name": name, "size": memoryview(data).nbytes, "sha256": hashlib.sha256(data).hexdigest()}


def _write_whole(path: Path, data: bytes | memoryview) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _is_as_written(path: Path, said: dict[str, Any]) -> bool:
    data = path.read_bytes()
    return bool(len(data) == said["size"] and hashlib.sha256(data).hexdigest() == said["sha256"])

"""A site's own load indices: programs ``elim`` and ``elim.NAME`` of LSF_SERVERDIR, which keep printing ``n name value …``.

Rule: each is a process of its own, and nothing waits for it; one that dies is started again, later each time; one that ends with
ELIM_ABORT_VALUE is not wanted on this host, and one that was started again as often as LSF_ELIM_RESTARTS says stays away. What a
program does not say any more is forgotten after ``STALE`` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from config.model.cluster import ElimRules
from config.programs.owner import only_root_writes
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

ABORT = 97
STALE = 180.0
PAUSES = (1.0, 5.0, 15.0, 60.0)
"""Before it is started again, the first time, the second …; after a minute of work it begins with the first again."""
LONGEST = 64 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,38}", re.ASCII)
_LOOK_AGAIN = 60.0
_LAST = 5.0
"""Seconds in which a program that has closed its output must end."""


def programs(folder: str, as_root: bool) -> list[str]:
    """The elims of a folder; run as root, only what nobody but root can write or put in the place of another."""
    try:
        names = sorted(os.listdir(folder)) if folder else []
        closed = not names or not as_root or only_root_writes(folder)
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(folder, name)
        if name != "elim" and not (name.startswith("elim.") and _NAME.fullmatch(name[5:])):
            continue
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            continue
        if not closed or (as_root and not only_root_writes(path)):
            log.error("elim %s: is not run, as others than root may write it", path)
            continue
        found.append(path)
    return found


class Asked(NamedTuple):
    """What the site's files say: the resources whose values programs are to say, and how the programs are run."""

    names: Sequence[str]
    rules: ElimRules = ElimRules()


def asked_of(confdir: str) -> Asked:
    """What the files of this folder say."""
    from config.read.load import load

    found = load(confdir).config
    return Asked([resource.name for resource in found.resources if resource.interval], found.elim)


def parse(line: str) -> dict[str, float]:
    """``n name value name value …``; values that are no numbers are left out. Raises ValueError for anything else."""
    words = line.split()
    if not words or not words[0].isdigit() or int(words[0]) * 2 != len(words) - 1:
        raise ValueError(line)
    values: dict[str, float] = {}
    for name, text in zip(words[1::2], words[2::2], strict=True):
        if not _NAME.fullmatch(name):
            raise ValueError(line)
        with contextlib.suppress(ValueError):
            value = float(text)
            if math.isfinite(value):
                values[name] = value
    return values


class Elims:
    """All of this host; ``values`` at any time."""

    def __init__(self, folder: str, asked: Callable[[], Asked], as_root: bool, pauses: tuple[float, ...] = PAUSES) -> None:
        self._folder = folder
        self._asked = asked
        self._as_root = as_root
        self._pauses = pauses
        self._looking = Workers("elim programs")
        self._said: dict[str, tuple[float, dict[str, float]]] = {}
        self._kept: dict[str, asyncio.Task[None]] = {}

    def values(self) -> dict[str, float]:
        """The newest values of each program that reported within STALE seconds."""
        now = time.monotonic()
        found: dict[str, float] = {}
        for at, values in self._said.values():
            if now < at + STALE:
                found |= values
        return found

    async def run(self) -> None:
        """Run all programs of the folder, also those added later."""
        try:
            while True:
                for path in await self._looking.run(programs, self._folder, self._as_root):
                    if path not in self._kept:
                        asked = await self._looking.run(self._asked)
                        self._kept[path] = asyncio.create_task(self._keep(path, asked))
                await asyncio.sleep(_LOOK_AGAIN)
        finally:
            for task in self._kept.values():
                task.cancel()

    async def _keep(self, path: str, asked: Asked) -> None:
        environ = {**os.environ, "LSF_RESOURCES": " ".join(asked.names), "LSF_MASTER": "N", "ELIM_ABORT_VALUE": str(ABORT)}
        fails = 0
        for restarts in itertools.count():
            began = time.monotonic()
            why, status = await self._work(path, environ, asked.rules)
            self._said.pop(path, None)
            if status == ABORT:
                log.info("elim %s: is not wanted on this host", path)
                return
            if asked.rules.restarts is not None and restarts >= asked.rules.restarts:
                log.error("elim %s: %s; it was started again %d times, as often as LSF_ELIM_RESTARTS says", path, why, restarts)
                return
            fails = 0 if time.monotonic() - began > 60 else fails
            pause = self._pauses[min(fails, len(self._pauses) - 1)]
            fails += 1
            log.warning("elim %s: %s; it is started again in %g s", path, why, pause)
            await asyncio.sleep(pause)

    async def _work(self, path: str, environ: Mapping[str, str], rules: ElimRules) -> tuple[str, int]:
        """One life of a program: why it ended, and its exit status (-1: unknown)."""
        try:
            process = await asyncio.create_subprocess_exec(
                path,
                *rules.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=environ,
                limit=LONGEST,
                start_new_session=True,
            )
        except OSError as error:
            return f"cannot be run: {error.strerror}", -1
        try:
            assert process.stdout is not None
            why = await self._listen(path, process.stdout, rules)
            if why:
                return why, -1
            async with asyncio.timeout(_LAST):
                status = await process.wait()
        except TimeoutError:
            return "closed its output", -1
        finally:
            # what it left behind goes too; of a process that is gone its group may still be there
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        return f"ended with {status}", status

    async def _listen(self, path: str, lines: asyncio.StreamReader, rules: ElimRules) -> str:
        """Read its lines; "" at the end of its output, else what is wrong with them."""
        while True:
            try:
                line = await _line(lines, rules.block_time)
            except TimeoutError:
                return f"did not end a line within the {rules.block_time} s of LSF_ELIM_BLOCKTIME"
            except ValueError:
                return f"said a line of more than {LONGEST} bytes"
            if not line:
                return ""
            try:
                values = parse(line.decode("ascii", "replace"))
            except ValueError:
                return f"said what is not 'n name value …': {line[:80]!r}"
            if rules.debug:
                log.info("elim %s: %s", path, line.decode("ascii", "replace").strip())
            self._said[path] = (time.monotonic(), values)


async def _line(lines: asyncio.StreamReader, seconds: int) -> bytes:
    """The next line, which has so many ``seconds`` from its first byte on (TimeoutError); 0: as long as it takes."""
    if not seconds:
        return await lines.readline()
    first = await lines.read(1)
    if first in (b"", b"\n"):
        return first
    async with asyncio.timeout(seconds):
        return first + await lines.readline()

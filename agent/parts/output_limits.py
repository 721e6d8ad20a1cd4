"""Looks at the output that the host keeps, once a second: one ``stat`` for each file of a running job.

Rule: what finished jobs left is listed once a minute, sooner on a disk without its reserve, and never so often that it takes more
than a hundredth of the time. A file system that hangs holds up its own thread only.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from agent.core import kept_output
from agent.core.kept_output import MB, Decision, Finished, Running
from agent.core.part import Stage
from agent.launch.outputs import show
from agent.launch.site import Site
from agent.parts import output_retention
from agent.parts.entry import Entry
from proto.daemon.workers import Workers

log = logging.getLogger("lava-agent")

LIST_PAUSE = 60.0
LOW_PAUSE = 5.0
LIST_SHARE = 0.01


class OutputLimits:
    """LAVA_OUTPUT_LIMIT, LAVA_OUTPUT_USER_LIMIT and LAVA_OUTPUT_RESERVE on this host."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._thread = Workers("kept output")
        self._finished: list[Finished] = []
        self._sizes: dict[str, int] = {}
        """Of what finished jobs left: bytes by user."""
        self._listed_at = -math.inf
        self._took = 0.0

    async def look(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Remove what finished jobs left beyond the limits; the attempts to end, by uid, with the names of the TermReasons."""
        running = [
            (Running(entry.uid, _user_of(entry), 0, bool(entry.part.limit)), files)
            for entry in entries
            if entry.part.stage is Stage.RUNNING
            and (files := [path for path in (entry.where.kept, entry.where.kept_error) if path])
        ]
        decided = await self._thread.run(self._look, running, partial(self._in_use, entries))
        keys = {entry.uid: entry.key for entry in entries if entry.uid in decided.end}
        for uid, key in keys.items():
            log.warning("job %s is ended for the output that is kept here: %s", show(key), decided.end[uid])
        return decided.end

    def _in_use(self, entries: Iterable[Entry]) -> set[tuple[str, str]]:
        """Users and names of the files of jobs that are not over."""
        paths = {path for entry in entries for path in entry.kept_files()}
        return {(os.path.basename(os.path.dirname(path)), os.path.basename(path)) for path in paths}

    def _look(self, running: Iterable[tuple[Running, list[str]]], in_use: Callable[[], set[tuple[str, str]]]) -> Decision:
        folder = self._site.output_dir
        try:
            disk = os.statvfs(folder)
        except OSError:
            return Decision()
        most = kept_output.limits(self._site.settings, disk.f_blocks * disk.f_frsize)
        writing = [Running(one.uid, one.user, sum(map(output_retention.size_of, files)), one.ending) for one, files in running]
        free = disk.f_bavail * disk.f_frsize
        self._list(LIST_PAUSE if free >= most.reserve else LOW_PAUSE, in_use)
        finished: list[Finished] = []
        if kept_output.is_tight(most, writing, self._sizes, free):
            used = in_use()
            finished = [file for file in self._finished if (file.user, file.name) not in used]
        decided = kept_output.decide(most, writing, finished, free)
        if decided.remove:
            gone = [file for file in decided.remove if output_retention.remove(folder, file)]
            tried = set(decided.remove)
            self._keep([file for file in self._finished if file not in tried])
            size = sum(file.size for file in gone) / MB
            log.warning(
                "%d files (%.0f MB) of finished jobs were too much output for this host: they are removed", len(gone), size
            )
        return decided

    def _keep(self, finished: list[Finished]) -> None:
        self._finished, self._sizes = finished, kept_output.sizes(finished)

    def _list(self, pause: float, in_use: Callable[[], set[tuple[str, str]]]) -> None:
        """Find again what finished jobs left, when that is due."""
        began = time.monotonic()
        if began >= self._listed_at + max(pause, self._took / LIST_SHARE):
            folder = self._site.output_dir
            shared = output_retention.is_shared(folder, self._site.host)
            used = in_use()
            self._keep([file for file in output_retention.left(folder) if not shared and (file.user, file.name) not in used])
            self._listed_at = time.monotonic()
            self._took = self._listed_at - began


def _user_of(entry: Entry) -> str:
    return os.path.basename(os.path.dirname(entry.where.kept))

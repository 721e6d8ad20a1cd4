"""Reads the configuration files again: for badmin reconfig, when a window of ``#if time(…)`` opens or closes, and where a master
takes over that had read them before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from config.model.problems import report
from config.programs.egroup import Egroup
from config.read.load import load as load_files
from lavad.configure.difference import differences
from lavad.configure.requirements import why_not
from lavad.configure.resolve import resolve
from lavad.core.decide.control.office import check_reconfig, configure
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.windows import is_open, local_of, parse_windows
from lavad.engine import Engine
from lavad.local_time import local_time
from lavad.services.audit import Audit
from proto.daemon.workers import Workers

log = logging.getLogger(__name__)

TIME_PAUSE = 10.0
"""Seconds between two checks of the windows of ``#if time(…)``."""


class Reconfiguration:
    """Reads the files of one configuration folder, which is that of ``host``."""

    def __init__(self, engine: Engine, host: str, confdir: str, clock: Callable[[], float], audit: Audit) -> None:
        self._engine = engine
        self._host, self._confdir = host, confdir
        self.audit = audit
        self._reading = Workers("configuration")
        self._clock = clock
        self._wrong = ""
        """What was wrong with the files when they were last read by themselves."""

    async def ask(self, caller: Caller) -> str:
        """badmin reconfig: read the whole configuration, or change nothing. Returns a text for the caller; raises Refused."""
        check_reconfig(self._engine.cluster, caller)
        await self._read(caller, "badmin reconfig")
        return "Reconfiguration initiated"

    def notices(self) -> list[str]:
        """Why what is in force is not what the files say; [] where badmin reconfig has said so to its caller."""
        return [f"configuration files have errors, the old configuration stays: {self._wrong}"] if self._wrong else []

    async def run(self, *, at_once: bool) -> None:
        """The files are read again when a window of `#if time(…)` opens or closes, and every EGROUP_UPDATE_INTERVAL."""
        if at_once:
            await self._read_unasked("a new master")
        seen: tuple[object, ...] = ()
        asked = self._clock()
        while True:
            interval = self._engine.cluster.conf.params.egroup_update_interval
            if interval and self._clock() - asked >= interval:
                asked = self._clock()
                await self._read_unasked("EGROUP_UPDATE_INTERVAL")
            local = local_of(local_time(self._clock()))
            windows = self._engine.cluster.conf.params.time_windows
            now = (windows, tuple(is_open(parse_windows(text), local) for text in windows))
            changed = windows and seen and seen[0] == windows and seen != now
            # what could not be read at a change, as egroup did not answer, say, is read with a later look
            if not changed or await self._read_unasked("a time window"):
                seen = now
            await asyncio.sleep(TIME_PAUSE)

    async def _read_unasked(self, why: str) -> bool:
        """Whether it is in force; what is wrong is logged once as long as it is the same."""
        former = self._wrong
        try:
            await self._read(None, why)
        except Refused as refusal:
            self._wrong, *_ = str(refusal).splitlines()
            if self._wrong != former:
                log.warning("configuration files, read for %s: %s", why, refusal)
        return not self._wrong

    async def _read(self, caller: Caller | None, why: str) -> None:
        loaded = await self._reading.run(load_files, self._confdir, None, Egroup, why_not)
        wrong = report(loaded.problems).strip() if loaded.has_errors else ""
        if loaded.unanswered and not wrong:
            wrong = report(problem for problem in loaded.problems if "egroup" in problem.text).strip()
        if wrong:
            raise Refused(
                f"{wrong}\nReconfiguration aborted by these files of the master's host {self._host}: the old configuration stays"
            )
        self._wrong = ""
        conf = resolve(loaded.config)
        former = self._engine.cluster.conf
        await self._engine.ask(lambda cluster, now: configure(cluster, now, conf))
        self.audit.configured(caller, why, differences(former, conf))

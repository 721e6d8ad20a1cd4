"""Whether this host can run jobs, in one line: the site's program (LAVA_HEALTH), and what the agent leans on.

Rule: the program ends with 0 where the host is well; else the first line that it printed is the reason. One that takes longer
than LAVA_HEALTH_TIMEOUT is a reason, too. It runs as the agent does, so a root agent runs only what nobody but root can write.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Mapping, Sequence

from agent.monitor.elim import only_root_writes
from proto.workers import Workers

log = logging.getLogger("lava-agent")

PERIOD, TIMEOUT = 60.0, 30.0
LONGEST = 200
READ = 4096
LAST = 1.0
"""Seconds in which a program that was killed is gone, unless the kernel holds it."""
Check = Callable[[], str]
"""A reason, or "": well."""


class Health:
    """Of this host. ``conf``: lsf.conf; ``checks``: what else may be wrong."""

    def __init__(self, conf: Mapping[str, str], as_root: bool, checks: Sequence[Check] = ()) -> None:
        self._program = conf.get("LAVA_HEALTH", "")
        self._period = seconds(conf.get("LAVA_HEALTH_PERIOD", ""), PERIOD)
        self._timeout = seconds(conf.get("LAVA_HEALTH_TIMEOUT", ""), TIMEOUT)
        self._as_root = as_root
        self._checks = checks
        self._looking = Workers("health program")
        self._said = ""

    def line(self) -> str:
        """What is wrong with the host, "" for nothing."""
        return self._said or next((why for check in self._checks if (why := check())), "")

    async def run(self) -> None:
        """Run the program again and again."""
        while self._program:
            said = await self.ask()
            if said != self._said:
                log.warning("health of this host: %s", said or "well again")
            self._said = said
            await asyncio.sleep(self._period)
        await asyncio.Event().wait()

    async def ask(self) -> str:
        """One run of the program: what is wrong, "" for nothing."""
        try:
            async with asyncio.timeout(self._timeout):
                if why := await self._looking.run(self._why_not):
                    return why
                return await self._ask()
        except TimeoutError:
            return f"{self._program} did not end within {self._timeout:g} s"
        except OSError as error:
            return f"{self._program} cannot be run: {error.strerror}"

    def _why_not(self) -> str:
        path = self._program
        if not os.path.isabs(path) or not os.path.isfile(path) or not os.access(path, os.X_OK):
            return f"{path} is not the path of a program"
        if self._as_root and not (only_root_writes(path) and only_root_writes(os.path.dirname(path))):
            return f"{path} is not run, as others than root may write it"
        return ""

    async def _ask(self) -> str:
        process = await asyncio.create_subprocess_exec(
            self._program, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            assert process.stdout is not None
            said = b""
            while piece := await process.stdout.read(READ):
                said += piece[: READ - len(said)]
            status = await process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), LAST)
        if status == 0:
            return ""
        text = said.decode("utf-8", "replace")
        first = "".join(letter if letter.isprintable() else "?" for letter in text.strip().partition("\n")[0])
        return first[:LONGEST] or f"{self._program} ended with {status}"


def seconds(text: str, default: float) -> float:
    """A number of seconds of lsf.conf, as the agent reads it: what is wrong with one ``badmin ckconfig`` says."""
    try:
        return float(text) if float(text) > 0 else default
    except ValueError:
        return default

"""Programs of the site that judge this host (LAVA_HEALTH) and its GPUs, and what the agent depends on.

Rule: a program ends with 0 where all is well; else the first line that it printed is the reason. It runs as the agent does, so a
root agent runs only what nobody but root can write. One that says nothing (it takes longer than LAVA_HEALTH_TIMEOUT, is killed,
or cannot be run) makes its host unwell, but no GPU.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterable, Sequence

from config.model.site_params import SiteParams
from config.programs.owner import only_root_writes
from proto.daemon.workers import Workers

log = logging.getLogger("lava-agent")

LONGEST = 200
READ = 4096
LAST = 1.0
"""Seconds in which a program that was killed is gone, unless the kernel holds it."""
Check = Callable[[], str]
"""A reason, or "": well."""


class NoVerdictError(Exception):
    """A program has judged nothing, for this reason."""


class Program:
    """One of the site."""

    def __init__(self, path: str, settings: SiteParams, as_root: bool) -> None:
        self.path = path
        self.period = settings.lava_health_period
        self._timeout = settings.lava_health_timeout
        self._as_root = as_root
        self._looking = Workers("health program")

    async def ask(self, *arguments: str) -> str:
        """One run: what is wrong, "" for nothing.

        Raises:
            NoVerdictError: It did not say.
        """
        try:
            async with asyncio.timeout(self._timeout):
                if why := await self._looking.run(self._why_not):
                    raise NoVerdictError(why)
                return await self._ask(arguments)
        except TimeoutError:
            raise NoVerdictError(f"{self.path} did not end within {self._timeout:g} s") from None
        except OSError as error:
            raise NoVerdictError(f"{self.path} cannot be run: {error.strerror}") from None

    def _why_not(self) -> str:
        path = self.path
        if not os.path.isabs(path) or not os.path.isfile(path) or not os.access(path, os.X_OK):
            return f"{path} is not the path of a program"
        if self._as_root and not (only_root_writes(path) and only_root_writes(os.path.dirname(path))):
            return f"{path} is not run, as others than root may write it"
        return ""

    async def _ask(self, arguments: Sequence[str]) -> str:
        process = await asyncio.create_subprocess_exec(
            self.path, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, start_new_session=True
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
                async with asyncio.timeout(LAST):
                    await process.wait()
        if status < 0:
            raise NoVerdictError(f"{self.path} ended with {status}")
        text = said.decode("utf-8", "replace") if status else ""
        first = "".join(letter if letter.isprintable() else "?" for letter in text.strip().partition("\n")[0])
        return first[:LONGEST] or (f"{self.path} ended with {status}" if status else "")


class Health:
    """Of this host. ``checks``: what else may be wrong."""

    def __init__(self, settings: SiteParams, as_root: bool, checks: Sequence[Check] = ()) -> None:
        self._program = Program(settings.lava_health, settings, as_root)
        self._checks = checks
        self._said = ""

    def line(self) -> str:
        """What is wrong with the host, "" for nothing."""
        return self._said or next((why for check in self._checks if (why := check())), "")

    async def run(self) -> None:
        """Run the program again and again."""
        while self._program.path:
            said = await self.ask()
            if said != self._said:
                log.warning("health of this host: %s", said or "well again")
            self._said = said
            await asyncio.sleep(self._program.period)
        await asyncio.Event().wait()

    async def ask(self) -> str:
        """One run of the program: what is wrong, "" for nothing."""
        try:
            return await self._program.ask()
        except NoVerdictError as error:
            return str(error)


class GpuHealth:
    """Of the GPUs of this host, by the site's program LAVA_GPU_HEALTH: it is given a GPU's index and UUID.

    One that has judged nothing changes nothing, and is named in the log.
    """

    def __init__(self, settings: SiteParams, as_root: bool) -> None:
        self._program = Program(settings.lava_gpu_health, settings, as_root)
        self._said: dict[str, str] = {}
        self._silent: dict[str, str] = {}
        """UUID to why it was not judged."""

    def why(self, uuid: str) -> str:
        """What is wrong with a GPU, "" for nothing."""
        return self._said.get(uuid, "")

    async def run(self, gpus: Callable[[], Iterable[tuple[str, int]]]) -> None:
        """Run the program again and again for all GPUs at once. ``gpus``: UUID and index of those that answer now."""
        while self._program.path:
            await asyncio.gather(*(self._judge(uuid, index) for uuid, index in gpus()))
            await asyncio.sleep(self._program.period)
        await asyncio.Event().wait()

    async def _judge(self, uuid: str, index: int) -> None:
        try:
            said = await self._program.ask(str(index), uuid)
        except NoVerdictError as error:
            if self._silent.get(uuid) != str(error):
                log.warning("GPU %s is not judged: %s", uuid, error)
            self._silent[uuid] = str(error)
            return
        self._silent.pop(uuid, None)
        if said != self.why(uuid):
            log.warning("health of GPU %s: %s", uuid, said or "well again")
        self._said[uuid] = said

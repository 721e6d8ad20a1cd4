"""Compute modes of GPUs: a job that asked for exclusive_process has its GPUs in that mode before it starts, or is refused.

Rule: what mode a GPU was in before is on disk before it is changed, and comes back when the part for which it was changed is no
more, after a restart of the agent too. The driver is asked in the thread of the GPUs only.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Collection, Sequence

import msgspec

from agent.monitor.gpu.source import GpuSource
from agent.monitor.gpu.watch import HANGS, HANGS_AFTER, GpuWatch
from proto.daemon.saved import read_saved
from proto.whole_file import replace_file

EXCLUSIVE_PROCESS = 3
"""NVML_COMPUTEMODE_EXCLUSIVE_PROCESS: contexts of one process at a time."""
TRY_AGAIN = 10.0
"""Seconds after a mode could not be set back."""
log = logging.getLogger("lava-agent")


class Changed(msgspec.Struct, frozen=True):
    """A GPU in another mode than it was in ``before``, for the part ``uid``."""

    uid: str
    before: int


class GpuModes:
    """The GPUs of this host that were put into another mode. ``folder``: the agent's own."""

    def __init__(self, watch: GpuWatch, folder: str, poke: Callable[[], None]) -> None:
        self._watch = watch
        self._path = os.path.join(folder, "gpu_modes.json")
        self._poke = poke
        self._changed = read_saved(self._path, dict[str, Changed]) or {}
        self._restoring: asyncio.Task[None] | None = None
        self._not_before = 0.0

    @property
    def changed(self) -> bool:
        """Whether a GPU is in another mode than it was in."""
        return bool(self._changed)

    async def take(self, uid: str, uuids: Sequence[str]) -> str:
        """Put GPUs into exclusive_process mode for a part; why that cannot be, "" when it is done."""
        try:
            async with asyncio.timeout(HANGS_AFTER):
                return await self._watch.call(lambda source: self._take(source, uid, uuids))
        except TimeoutError:
            return HANGS
        except OSError as e:
            return f"{self._path}: {e.strerror}"
        except Exception as e:
            # whoever waits for this must hear of it
            log.exception("the compute modes of %s could not be set", ", ".join(uuids))
            return f"the compute modes of its GPUs cannot be set: {type(e).__name__}"

    def keep(self, uids: Collection[str]) -> None:
        """Only these parts are here: what was changed for others is set back, beside everything else."""
        if self._restoring is None and time.monotonic() >= self._not_before:
            over = [uuid for uuid, one in self._changed.items() if one.uid not in uids]
            if over:
                self._restoring = asyncio.create_task(self._restore(over))

    async def _restore(self, uuids: Sequence[str]) -> None:
        try:
            await self._watch.call(lambda source: self._set_back(source, uuids))
        except OSError as e:
            log.warning("%s: %s", self._path, e.strerror)
        finally:
            self._restoring = None
            self._not_before = time.monotonic() + TRY_AGAIN * bool(self._changed)
        self._poke()

    # -- in the thread of the GPUs -----------------------------------------------------------------------------------

    def _take(self, source: GpuSource | None, uid: str, uuids: Sequence[str]) -> str:
        for uuid in uuids:
            before = source.mode(uuid) if source else None
            if source is None or before is None:
                return f"the compute mode of GPU {uuid} cannot be set to exclusive_process: it does not answer"
            known = self._changed.get(uuid)
            self._note({**self._changed, uuid: Changed(uid, known.before if known else before)})
            if before != EXCLUSIVE_PROCESS and (why := source.set_mode(uuid, EXCLUSIVE_PROCESS)):
                return f"the compute mode of GPU {uuid} cannot be set to exclusive_process: {why}"
        return ""

    def _set_back(self, source: GpuSource | None, uuids: Sequence[str]) -> None:
        for uuid in uuids:
            why = source.set_mode(uuid, self._changed[uuid].before) if source else "there is no driver"
            if why:
                log.warning("the compute mode of GPU %s cannot be set back: %s", uuid, why)
            else:
                self._note({name: one for name, one in self._changed.items() if name != uuid})

    def _note(self, changed: dict[str, Changed]) -> None:
        if changed != self._changed:
            replace_file(self._path, msgspec.json.encode(changed), synced=True)
            self._changed = changed

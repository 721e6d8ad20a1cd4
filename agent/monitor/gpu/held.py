"""GPUs that processes of a job that is over still hold, told until these are gone; a restart of the agent forgets none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from agent.monitor.gpu.records import GpuProcess
from agent.monitor.procscan import read_proc
from proto.daemon.saved import read_saved
from proto.whole_file import replace_file

Pid = tuple[int, int]
"""Pid and start time."""


class Hold(msgspec.Struct):
    """Of one GPU: the sentence that is told, and the processes."""

    why: str
    pids: set[Pid]


class HeldGpus:
    """By UUID. ``path``: the file, "": none."""

    def __init__(self, path: str = "") -> None:
        self._path = path
        self._holds = read_saved(path, dict[str, Hold]) or {}

    def why(self, uuid: str) -> str:
        """Who holds it, "" for nobody."""
        hold = self._holds.get(uuid)
        return hold.why if hold is not None else ""

    def hold(self, uuid: str, why: str, pids: Iterable[Pid]) -> None:
        """These hold it from now on."""
        self._holds[uuid] = Hold(why, set(pids))
        self._save()

    def look(self, processes: Iterable[GpuProcess], answering: Iterable[str]) -> None:
        """Forget what is over: a process that has ended, or that is no longer on a GPU that answers."""
        if not self._holds:
            return
        on, answers = {(one.uuid, one.pid) for one in processes}, set(answering)
        changed = False
        for uuid, hold in list(self._holds.items()):
            stays = {pid for pid in hold.pids if _lives(*pid) and (uuid not in answers or (uuid, pid[0]) in on)}
            changed |= stays != hold.pids
            hold.pids = stays
            if not stays:
                del self._holds[uuid]
        if changed:
            self._save()

    def _save(self) -> None:
        if self._path:
            with contextlib.suppress(OSError):  # told on as long as this agent lives
                replace_file(self._path, msgspec.json.encode(self._holds))


def _lives(pid: int, start: int) -> bool:
    proc = read_proc(pid)
    return proc is not None and proc.start == start and proc.state != "Z"

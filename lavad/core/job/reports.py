"""What an agent reports of one part of an attempt, as the wire brings it and decisions read it.

``key`` and ``uid`` name the attempt, ``host`` is where the report comes from; wait statuses are as ``os.wait`` gives them.
"""

from __future__ import annotations

import msgspec

from lavad.core.job.endpoint import Endpoint
from lavad.core.job.job import End
from lavad.core.lang.states import TermReason


class PartReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report; alone, one of a kind that this version does not know: it is acknowledged, and nothing follows."""

    host: str
    key: int
    uid: str
    attempt: int = 0
    serial: int = 0
    """Counts the reports of a stream; by it they are acknowledged."""

    @property
    def is_last(self) -> bool:
        """Whether nothing of the part is left, so that its host may forget it once this is committed."""
        return False


class PreparedReport(PartReport, frozen=True, kw_only=True):
    """All is in place on the host; the part waits for the word to go."""

    endpoint: Endpoint = Endpoint()
    door: str = ""
    """Where the user of an interactive job connects to, ``ip port name``."""


class StartedReport(PartReport, frozen=True, kw_only=True):
    """Its processes run. ``pid``: of the first task; ``started``: seconds since the epoch."""

    pid: int
    started: float
    cwd: str = ""


class EndedReport(PartReport, frozen=True, kw_only=True):
    """Its job process has ended. ``gone``: nothing of the part is left on the host."""

    end: End
    gone: bool = False

    @property
    def is_last(self) -> bool:
        return self.gone


class GoneReport(PartReport, frozen=True, kw_only=True):
    """Nothing of the part is left. ``post``: wait status of the post-execution command."""

    post: int = 0

    @property
    def is_last(self) -> bool:
        return True


class RefusedReport(PartReport, frozen=True, kw_only=True):
    """It was not started. ``code``: one of the agent's words for the cause; ``why``: one line."""

    code: str
    why: str

    @property
    def is_last(self) -> bool:
        return True


class StoppedReport(PartReport, frozen=True, kw_only=True):
    """Its processes are stopped, or go on."""

    stopped: bool


class GrantedReport(PartReport, frozen=True, kw_only=True):
    """The request ``wish`` was carried out (``ok``) or could not be, and ``why``."""

    wish: int
    ok: bool
    why: str = ""


class CheckpointReport(PartReport, frozen=True, kw_only=True):
    """A whole checkpoint is on disk."""

    generation: int


class ResizeReport(PartReport, frozen=True, kw_only=True):
    """The notification command of resize ``number`` has ended."""

    number: int
    ok: bool
    why: str = ""


class TaskReport(PartReport, frozen=True, kw_only=True):
    """About one task of a job with roles. ``number`` counts the task's starts in the attempt."""

    rank: int
    number: int


class TaskStartReport(TaskReport, frozen=True, kw_only=True):
    """It runs."""

    pid: int


class TaskEndReport(TaskReport, frozen=True, kw_only=True):
    """It has ended. ``limit``: what its agent ended it for."""

    status: int
    limit: TermReason = TermReason.NONE

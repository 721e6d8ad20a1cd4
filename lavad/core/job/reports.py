"""Reports of an agent about one part of an attempt: decoded by ``lavad.wire``, read by the decisions.

``key`` and ``uid`` name the attempt, ``host`` is where the report comes from; wait statuses are as ``os.wait`` gives them.
"""

from __future__ import annotations

import msgspec

from lavad.core.job.endpoint import Endpoint
from lavad.core.job.job import End
from lavad.core.lang.states import TermReason


class PartReport(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of every report. An instance of this class itself is of an unknown kind: acknowledged and ignored."""

    host: str
    key: int
    uid: str
    attempt: int = 0
    serial: int = 0
    """Number of the report on its stream, used to acknowledge it."""

    @property
    def is_last(self) -> bool:
        """Whether nothing of the part is left: its host may forget the part once this report is committed."""
        return False


class GpuFault(msgspec.Struct, frozen=True):
    """What is wrong with a GPU that a part had, as it ends; ``cause`` and ``error`` as in ``GpuState``."""

    uuid: str
    cause: str = ""
    error: str = ""


class PreparedReport(PartReport, frozen=True, kw_only=True):
    """The host is ready; the part waits for its release."""

    endpoint: Endpoint = Endpoint()
    attach_address: str = ""
    """Address to which the user of an interactive job connects: ``ip port name``."""


class StartedReport(PartReport, frozen=True, kw_only=True):
    """Its processes run. ``pid``: of the first task; ``started``: seconds since the epoch."""

    pid: int
    started: float
    cwd: str = ""


class EndedReport(PartReport, frozen=True, kw_only=True):
    """The job process of the part has ended. ``gone``: nothing of the part is left on the host."""

    end: End
    gone: bool = False
    gpu_faults: tuple[GpuFault, ...] = ()

    @property
    def is_last(self) -> bool:
        return self.gone


class GoneReport(PartReport, frozen=True, kw_only=True):
    """Nothing of the part is left. ``post``: wait status of the post-execution command."""

    post: int = 0
    gpu_faults: tuple[GpuFault, ...] = ()

    @property
    def is_last(self) -> bool:
        return True


UNSENDABLE = "order"
"""The code of a start that no host can be told of."""


class RefusedReport(PartReport, frozen=True, kw_only=True):
    """The host refused to start it. ``code``: the agent's error code; ``why``: one line."""

    code: str
    why: str

    @property
    def is_last(self) -> bool:
        return True


class StoppedReport(PartReport, frozen=True, kw_only=True):
    """Its processes are stopped, or resumed."""

    stopped: bool


class GrantedReport(PartReport, frozen=True, kw_only=True):
    """The pending signal ``number`` was carried out (``ok``), or why not (``why``)."""

    number: int
    ok: bool
    why: str = ""


class CheckpointReport(PartReport, frozen=True, kw_only=True):
    """A checkpoint is whole, or ``why`` it is not (``generation`` -1: there is none).

    ``seconds``: from the request until then, 0.0: nobody asked; ``size`` in bytes.
    """

    generation: int
    seconds: float = 0.0
    size: int = 0
    method: str = ""
    why: str = ""
    newest: int | None = None
    """The newest that is whole, where that is another than was known."""
    staged: bool = False
    holder: str = ""
    """Of a copy on another host: that host. With ``why``: it is what has failed."""
    """It is about the copy of the generation in the shared folder: that is whole, of ``size`` bytes, or ``why`` it is not."""


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
    """It has ended. ``limit``: the limit for which its agent ended it."""

    status: int
    limit: TermReason = TermReason.NONE

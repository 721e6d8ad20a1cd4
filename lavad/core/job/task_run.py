"""The record of one task of a job with roles."""

from __future__ import annotations

import msgspec

from lavad.core.lang.states import TaskState, TermReason


class TaskRun(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One task of a job with roles: its place in ``Attempt.tasks`` is its rank, for the job's life."""

    role: int
    index: int
    place: int = 0
    """Which part it is in."""
    number: int = 1
    """Number of its starts in this attempt."""
    state: TaskState = TaskState.WAITING
    late: bool = False
    """It starts once the tasks of the roles ``after`` have been started; without any, all tasks that are not late."""
    after: tuple[int, ...] = ()
    delay: float = 0.0
    """Seconds until its next start."""
    status: int = 0
    """Wait status of its last end."""
    at: float = 0.0
    """When it entered this state."""
    pid: int = 0
    recalled: bool = False
    """It is ended, if it is not over, and starts again once all tasks that are recalled with it are over."""
    base: int = 1
    """Number of its first start since its group was last restarted as a whole."""
    recalls: int = 0
    """How often its group was."""
    due: float = 0.0
    """When what follows from its end is done, which is not over before; 0.0: it was done at once."""
    limit: TermReason = TermReason.NONE
    """The limit that its last end was for, until it is to start again."""

"""What can go wrong. Every error of this package is a ``LavaError``."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, CancelledError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future


class LavaError(Exception):
    """An error of lava or of a job. ``jobs``: where it ends ``submit_many``, those that are submitted."""

    jobs: Sequence[Future[int]] = ()


class Unavailable(LavaError):
    """No master answers, or there is no cluster at all (no lsf.conf, no socket)."""


class NotSignedIn(Unavailable):
    """The cluster does not take the token: it has ended, was called back, or is of another cluster."""


class Refused(LavaError):
    """lava refuses; the text is that of bsub or of the command that does the same.

    ``retry``: seconds after which to ask again, 0: it is final.
    """

    def __init__(self, text: str, jobs: Sequence[Future[int]] = (), retry: float = 0) -> None:
        super().__init__(text)
        self.jobs, self.retry = jobs, retry


class JobFailed(LavaError):
    """The job ended in EXIT.

    ``job``: its id; ``code``: its exit code as a shell shows it (137 for signal 9), 126 for a job that was killed while it
    waited; ``why``: in words, where lava knows; ``reason``: LSF's name of the reason (``TERM_MEMLIMIT``), or "".
    """

    def __init__(self, job: str, code: int, why: str = "", reason: str = "") -> None:
        super().__init__(job, code, why, reason)
        self.job, self.code, self.why, self.reason = job, code, why, reason

    def __str__(self) -> str:
        said = ", ".join(part for part in (self.reason, self.why) if part)
        return f"job {self.job} ended with exit code {self.code}" + (f": {said}" if said else "")


class JobKilled(JobFailed, CancelledError):
    """The job was ended by its owner or an administrator: ``bkill``."""


class CallLost(JobFailed, BrokenExecutor):
    """The job of a call ended without a result: its process was killed, crashed, or could not start.

    Unlike a process pool, the executor goes on: each call has a job of its own.
    """


class InitializerFailed(LavaError, BrokenExecutor):
    """The executor's initializer raised; the executor takes no more calls."""


class RemoteError(LavaError):
    """A call raised an exception, or gave a result, that cannot be brought here; the text says what it was."""


class RemoteTraceback(Exception):
    """The cause of an exception that a call raised: the traceback as it was where the call ran."""

    def __init__(self, tb: str) -> None:
        super().__init__(tb)
        self.tb = tb

    def __str__(self) -> str:
        return f'\n"""\n{self.tb}"""'

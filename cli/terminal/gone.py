"""What the end of a task of blaunch does to its job: RTASK_GONE_ACTION of the profile, or the job's variable of it."""

from __future__ import annotations

import os

from cli.terminal import taskframes as wire
from cli.terminal.tasklink import TaskLink

VARIABLE = "LSB_DJOB_RTASK_GONE_ACTION"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def ends_job(actions: str, code: int) -> bool:
    """Whether a task that has ended with this code ends its job; a crash is the end by a signal, 128 + N."""
    words = actions.upper().split()
    if not code:
        return "KILLJOB_TASKDONE" in words
    return "KILLJOB_TASKEXIT" in words and not (code > 128 and "IGNORE_TASKCRASH" in words)


def link_of(env: Mapping[str, str]) -> type[TaskLink]:
    """The kind of link that does what the variable asks for."""
    return _EndsJob if env.get(VARIABLE) else TaskLink


class _EndsJob(TaskLink):
    _asked = False

    def _took(self, kind: int, number: int, body: bytes) -> None:
        super()._took(kind, number, body)
        if kind == wire.EXIT and not self._asked and ends_job(os.environ[VARIABLE], wire.read_exit(body)):
            self._asked = True
            _end(f"RTASK_GONE_ACTION: task {number} ended with exit code {wire.read_exit(body)}")


def _end(why: str) -> None:
    """Have the job killed; what is said of it is bkill's."""
    bkill = os.path.join(os.environ.get("LSF_BINDIR", ""), "bkill")
    job = os.environ.get("LSB_BATCH_JID") or os.environ["LSB_JOBID"]
    silent = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1)]
    os.posix_spawnp(bkill, ["bkill", "-C", why, job], os.environ, file_actions=silent)

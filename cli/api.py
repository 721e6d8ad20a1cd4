"""Jobs from Python: ``submit("./train", slots=4)`` gives a future with the result of the job.

    from cli.api import submit

    jobs = [submit(["./step", str(number)], queue="normal", output="step.%J") for number in range(10)]
    print([job.result() for job in jobs])

Rule: it asks as bsub does, over the same socket, for the calling user. Options are bsub's, by the names in NAMES or their own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from cli.client.client import Client, read_conf
from cli.client.context import Context, Fail, of_process
from cli.submit.script import Work, command_line
from cli.submit.submission import exit_status, submission
from cli.submit.submit_options import with_defaults

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.client.frames import Frame
    from proto.answers import Answer

NAMES = {
    "name": "J",
    "queue": "q",
    "slots": "n",
    "resreq": "R",
    "hosts": "m",
    "gpu": "gpu",
    "run_limit": "W",
    "memory": "M",
    "output": "o",
    "error": "e",
    "input": "i",
    "project": "P",
    "depends": "w",
    "group": "g",
    "app": "app",
    "rerunnable": "r",
    "exclusive": "x",
    "held": "H",
    "launch": "a",
    "description": "Jd",
}
"""Readable names of bsub's options; any other option goes by its own name."""


class Refused(Exception):
    """lava refuses; the text is bsub's."""


class JobFailed(Exception):
    """The job ended in EXIT. ``code`` is as a shell shows it, 126 for one that was killed while it waited."""

    def __init__(self, job: int, code: int, why: str) -> None:
        super().__init__(f"job {job} ended with exit code {code}" + (f": {why}" if why else ""))
        self.job, self.code, self.why = job, code, why


class Job(Future[int]):
    """A submitted job: ``result()`` waits and is 0, or raises JobFailed. ``cancel()`` kills the job."""

    def __init__(self, number: int, queue: str) -> None:
        super().__init__()
        self.id = number
        self.queue = queue
        self.set_running_or_notify_cancel()
        threading.Thread(target=self._wait, name=f"lava job {number}", daemon=True).start()

    def cancel(self) -> bool:
        """Kill the job; True unless it had ended. ``result`` raises JobFailed once the job has ended."""
        answer = _asked({"ask": "kill", "jobs": {"ids": [str(self.id)]}}, changes=True)
        return all(not row.get("why") for row in answer.get("results", ()))

    def _wait(self) -> None:
        try:
            ended = _asked({"ask": "wait", "job": self.id, "until": "finished"}, patience=None)
        except Refused as refused:
            self.set_exception(refused)
            return
        code = exit_status(str(ended["state"]), int(ended.get("status") or 0))
        if ended["state"] == "DONE":
            self.set_result(0)
        else:
            self.set_exception(JobFailed(self.id, code, str(ended.get("why") or "")))

    def __repr__(self) -> str:
        return f"<Job {self.id} {'ended' if self.done() else 'submitted'}>"


def submit(
    command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None, **options: object
) -> Job:
    """Submit a shell command, or the words of one; raises Refused.

    ``env``: variables beside those of this process. Options: see ``NAMES``; True for a flag, a list where bsub takes one
    several times.
    """
    context = _context()
    if cwd is not None:
        context.cwd = os.path.abspath(cwd)
    work = Work(command if isinstance(command, str) else command_line(list(command)))
    given = {NAMES.get(name, name): _value(value) for name, value in options.items() if value not in (None, False)}
    frame = submission(context, work, with_defaults(context, given), {**context.environ, **(env or {})})
    ok = _asked(frame, changes=True)
    return Job(int(ok["job"]), str(ok["queue"]))


def _value(value: object) -> str | bool | list[str]:
    if isinstance(value, bool):
        return value
    if isinstance(value, (list, tuple)):
        return [str(one) for one in value]
    return str(value)


def _context() -> Context:
    return of_process([])


def _asked(frame: Frame, *, changes: bool = False, patience: float | None = 60.0) -> Answer:
    try:
        context = _context()
        client = Client(context, read_conf(context))
        return client.change(frame) if changes else client.ask(frame, patience)
    except Fail as fail:
        raise Refused(fail.text) from None

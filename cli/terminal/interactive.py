"""``bsub -I``: wait until the job is dispatched, be its terminal while it runs, exit as it did."""

from __future__ import annotations

import os
import signal
import time

from cli.client.client import Client
from cli.client.context import Context, Fail
from cli.submit.submission import KILLED_WHILE_PENDING, exit_status
from config.lsfconf import is_yes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.terminal.x11 import Screen
    from proto.answers import Answer

NEWS_SECONDS = 5.0
"""Seconds to wait for the master's word on a job whose exit code is known already."""
AGAIN_SECONDS = 1.0
"""Seconds after a signal from which on another one is a wish of its own."""
_ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class Messages:
    """What an interactive command says of its job beside the job's own output; this one says nothing."""

    silent: float | None = None
    """Seconds for which the job may wait until ``waits`` is told why; None: it is not."""

    def say(self, line: str) -> None:
        """A line of bsub's about the job."""

    def starts(self, host: str) -> None:
        """The job starts there."""

    def waits(self, reason: str) -> None:
        """The job still waits."""


class _Leave(Exception):
    """A signal that ends this command."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def bsub_converse(
    context: Context, client: Client, conf: dict[str, str], job: int, pty: bool, screen: Screen | None = None
) -> int:
    """Stay with the job until it ends, with bsub's messages; its exit code."""
    messages = _OfBsub(context) if "BSUB_QUIET2" not in context.environ else Messages()
    return Conversation(context, client, conf, job, pty, messages, screen).stay()


class _OfBsub(Messages):
    def __init__(self, context: Context) -> None:
        self._context = context

    def say(self, line: str) -> None:
        self._context.err(line)

    def starts(self, host: str) -> None:
        self.say(f"<<Starting on {host}>>\n")


class _Late(Exception):
    """The master did not answer in time. No OSError, which would be taken for a broken connection."""


class Conversation:
    """One interactive job over all its attempts. ``screen``: where the windows of its programs are shown."""

    def __init__(
        self,
        context: Context,
        client: Client,
        conf: dict[str, str],
        job: int,
        pty: bool,
        messages: Messages,
        screen: Screen | None = None,
    ) -> None:
        self._context = context
        self._client = client
        self._job = job
        self._tty = pty and (os.isatty(0) or os.isatty(1))
        own = context.environ.get("LSF_INTERACTIVE_STDERR") or conf.get("LSF_INTERACTIVE_STDERR", "")
        self._apart = is_yes(own)
        self._messages = messages
        self._screen = screen
        self._attempt = 0

    def stay(self) -> int:
        """Stay with the job until it ends; its exit code."""
        _leave_on_signals()
        try:
            self._messages.say("<<Waiting for dispatch ...>>\n")
            return self._run()
        except _Leave as left:
            self._client.change({"ask": "kill", "jobs": {"ids": [str(self._job)]}})
            return 128 + left.number

    def _run(self) -> int:
        """Attach to each attempt until one is the last; the exit code."""
        code: int | None = None
        while True:
            found = self._find(code)
            if found is None:
                assert code is not None
                return code
            if "door" not in found:
                return self._ended(found, code)
            self._attempt = int(found["attempt"])
            code = self._join(found)

    def _find(self, code: int | None) -> Answer | None:
        """The endpoint of the next attempt, or how the job ended; None where the master is silent and the exit code is known."""
        _leave_on_signals()
        ask = {"ask": "attach", "job": self._job, "after": self._attempt}
        if code is not None:
            return self._ask_for(NEWS_SECONDS, ask, NEWS_SECONDS)
        if self._messages.silent is not None and not self._attempt:
            found = self._ask_for(self._messages.silent, ask, None)
            if found is not None:
                return found
            self._messages.waits(self._why_it_waits())
        return self._client.ask(ask, patience=None)

    def _ask_for(self, seconds: float, ask: dict[str, object], patience: float | None) -> Answer | None:
        """The answer; None where none has come in so many seconds."""
        signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return self._client.ask(ask, patience=patience)
        except _Late:
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _why_it_waits(self) -> str:
        """The key reason, as bjobs -p1 has it; "" where it no longer waits."""
        options = {"p1": True, "noheader": True}
        shown = self._client.text_of(
            {"ask": "query", "command": "bjobs", "options": options, "words": [str(self._job)]}, quiet=True
        )
        return " ".join(line.strip() for line in shown.splitlines()[1:]).rstrip(";")

    def _join(self, found: Answer) -> int | None:
        from cli.terminal.attach import Attached, connect

        try:
            link = connect(found)
        except Fail as fail:
            self._context.err(fail.text + "\n")
            link = None
        if link is None:
            time.sleep(0.2)
            return None
        self._messages.starts(str(found["host"]))
        attached = Attached(self._context, link, self._tty, self._apart, self._screen)
        attached.greet(str(found["token"]))
        try:
            return attached.code()
        finally:
            link.close()

    def _ended(self, found: Answer, code: int | None) -> int:
        if code is not None:
            return code
        if why := found.get("why"):
            self._context.err(f"bsub: {why}\n")
        elif not self._attempt:
            self._messages.say("<<Terminated while pending>>\n")
            return KILLED_WHILE_PENDING
        return exit_status(str(found["state"]), int(found.get("status") or 0))


def _leave_on_signals() -> None:
    for number in _ENDS:
        signal.signal(number, _leave)


def _leave(number: int, _: object) -> None:
    """The job is killed before the command ends. ``timeout`` signals twice at once; who asks once more does not wait for that."""
    begun = time.monotonic()

    def again(number: int, _: object) -> None:
        if time.monotonic() - begun > AGAIN_SECONDS:
            os._exit(128 + number)

    for one in _ENDS:
        signal.signal(one, again)
    raise _Leave(number)


def _late(*_: object) -> None:
    raise _Late

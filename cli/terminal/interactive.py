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
    from collections.abc import Callable

    from cli.terminal.x11 import Screen
    from proto.answers import Answer

    Say = Callable[[str], None]

NEWS_SECONDS = 5.0
"""Seconds to wait for the master's word on a job whose exit code is known already."""


class _Leave(Exception):
    """A signal that ends this command."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def bsub_converse(
    context: Context, client: Client, conf: dict[str, str], job: int, pty: bool, screen: Screen | None = None
) -> int:
    """Stay with the job until it ends, with bsub's messages; its exit code."""
    say = context.err if "BSUB_QUIET2" not in context.environ else _unsaid
    return Conversation(context, client, conf, job, pty, say, lambda host: say(f"<<Starting on {host}>>\n"), screen).stay()


def _unsaid(_: str) -> None:
    """With BSUB_QUIET2 nothing is printed."""


class _Late(Exception):
    """The master did not answer in time. No OSError, which would be taken for a broken connection."""


class Conversation:
    """One interactive job over all its attempts.

    ``say`` prints a line, ``say_host`` the host on which it starts; ``screen``: where the windows of its programs are shown.
    """

    def __init__(
        self,
        context: Context,
        client: Client,
        conf: dict[str, str],
        job: int,
        pty: bool,
        say: Say,
        say_host: Say,
        screen: Screen | None = None,
    ) -> None:
        self._context = context
        self._client = client
        self._job = job
        self._tty = pty and (os.isatty(0) or os.isatty(1))
        own = context.environ.get("LSF_INTERACTIVE_STDERR") or conf.get("LSF_INTERACTIVE_STDERR", "")
        self._apart = is_yes(own)
        self._say = say
        self._say_host = say_host
        self._screen = screen
        self._attempt = 0

    def stay(self) -> int:
        """Stay with the job until it ends; its exit code."""
        _leave_on_signals()
        try:
            self._say("<<Waiting for dispatch ...>>\n")
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
        if code is None:
            return self._client.ask(ask, patience=None)
        signal.signal(signal.SIGALRM, _late)
        signal.setitimer(signal.ITIMER_REAL, NEWS_SECONDS)
        try:
            return self._client.ask(ask, patience=NEWS_SECONDS)
        except _Late:
            return None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

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
        self._say_host(str(found["host"]))
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
            self._say("<<Terminated while pending>>\n")
            return KILLED_WHILE_PENDING
        return exit_status(str(found["state"]), int(found.get("status") or 0))


def _leave_on_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _leave)


def _leave(number: int, _: object) -> None:
    raise _Leave(number)


def _late(*_: object) -> None:
    raise _Late

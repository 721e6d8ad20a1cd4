"""The caller of a command (words, working folder, environment, umask, three file descriptors), and how a command fails.

Rule: a command touches the outside world only through its Context, the socket and the files that it names.
"""

from __future__ import annotations

import os
from _socket import MSG_DONTWAIT

LSF_FAILED = 255
INTERRUPTED = 130
BROKEN_PIPE = 141
LONGEST_LINE = 400
NOTHING = "/dev/null"
FOLDER_GONE = "The current working directory no longer exists"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket as Socket
    from collections.abc import Callable


class Fail(Exception):
    """The command ends with ``status``; ``text``, unless "", goes to stderr."""

    def __init__(self, text: str, status: int = LSF_FAILED) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


class Done(Exception):
    """The command ends with ``status``: one of its options said all that it was to do, and that is done."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


class Refused(Fail):
    """The master refuses, in LSF's words. ``retry``: seconds after which it may be asked again, 0: it need not be."""

    retry = 0


class OwnProcess(BaseException):
    """This command has to run as a process that its caller started. ``taken``: what has been read of standard input."""

    def __init__(self, taken: bytes) -> None:
        super().__init__()
        self.taken = taken


class Context:
    """What a command is called with. ``cwd`` is "" where the folder is gone."""

    __slots__ = ("acted", "argv", "cwd", "environ", "said", "stderr", "stdin", "stdout", "taken", "umask")
    caller: Socket | None = None
    """The connection to the caller, where this process is a server's (``cli/native``)."""

    def __init__(
        self,
        argv: list[str],
        cwd: str = "",
        environ: dict[str, str] | None = None,
        stdin: int = 0,
        stdout: int = 1,
        stderr: int = 2,
        umask: int = 0o022,
    ) -> None:
        self.argv = argv
        self.cwd = cwd
        self.environ = environ if environ is not None else {}
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.umask = umask
        self.said = ""
        """What was last written to stderr."""
        self.taken = b""
        """What has been read of standard input."""
        self.acted = self.caller is None
        """Whether ``acts`` was said, or nobody but this process can do the command."""

    def acts(self) -> None:
        """Said before anything is sent or printed, or read of standard input: until then the caller can still do the command."""
        if self.acted:
            return
        self.acted = True
        assert self.caller is not None
        try:
            self.caller.recv(1, MSG_DONTWAIT)
        except OSError:  # a caller of an older lava has sent nothing for this
            pass

    def need_own_process(self) -> None:
        """Said before anything is sent or printed, of what needs the caller's terminal, session or signals."""
        if self.caller is not None:
            raise OwnProcess(self.taken)

    def out(self, text: str) -> None:
        """Write to stdout, unbuffered, so that stdout and stderr keep their order."""
        self.acts()
        _write(self.stdout, text)

    def err(self, text: str) -> None:
        """Write to stderr; that it is closed is no error."""
        self.acts()
        self.said = text
        try:
            _write(self.stderr, text)
        except OSError:
            pass

    def path(self, name: str) -> str:
        """A file name relative to the caller's folder; of a file that this process is to open. Raises Fail."""
        path = os.path.join(self.cwd, name)
        if not os.path.isabs(path):
            raise Fail(FOLDER_GONE)
        if self.caller is not None and name != NOTHING and os.path.realpath(path).startswith(("/dev/", "/proc/")):
            self.need_own_process()  # /dev/fd/5, or a link to it, is another file in another process
        return path


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "surrogateescape"))
    while data:
        data = data[os.write(descriptor, data) :]


def _folder(environ: dict[str, str]) -> str:
    """The working folder by the user's name for it (PWD keeps links and automounts), else the kernel's; "" where it is gone."""
    try:
        here = os.stat(".")
    except OSError:
        return ""
    named = environ.get("PWD", "")
    if named.startswith("/") and "/./" not in named and "/../" not in named:
        try:
            there = os.stat(named)
        except OSError:
            there = None
        if there is not None and (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino):
            return named
    try:
        return os.getcwd()
    except OSError:
        return ""


def _fill_standard() -> None:
    """Open closed standard descriptors on /dev/null, or a socket would get their numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open("/dev/null", os.O_RDWR)


def of_process(argv: list[str] | None = None) -> Context:
    """The Context of this process."""
    _fill_standard()
    if argv is None:
        import sys

        argv = sys.argv[1:]
    environ = {
        name.decode("utf-8", "surrogateescape"): value.decode("utf-8", "surrogateescape") for name, value in os.environb.items()
    }
    umask = os.umask(0o077)
    os.umask(umask)
    return Context(argv, _folder(environ), environ, umask=umask)


def readable(text: str) -> str:
    """A message with its long lines shortened in the middle: it may name a value of any length."""
    if len(text) <= LONGEST_LINE:
        return text
    half = LONGEST_LINE // 2
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:half]} ... {line[-half:]}" for line in text.split("\n")]
    return "\n".join(lines)


def finish(run: Callable[[Context], int], context: Context) -> int:
    """Run a command; its exit status. Whatever happens, the user reads one line and no traceback; on a terminal a hint, too."""
    status = _finished(run, context)
    if status and context.said and os.isatty(context.stderr):
        context.err(_hint(context))
    return status


def _hint(context: Context) -> str:
    try:
        from cli.client.hints import hint

        return hint(context, context.said)
    except Exception:
        if context.environ.get("LAVA_DEBUG"):
            raise
        return ""  # what went wrong was said


def _finished(run: Callable[[Context], int], context: Context) -> int:
    try:
        return run(context)
    except Done as done:
        return done.status
    except Fail as fail:
        if fail.text:
            context.err(readable(fail.text) + "\n")
        return fail.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError as error:
        context.err(readable(f"{error.filename or 'output'}: {error.strerror or error}") + "\n")
        return LSF_FAILED
    except Exception as error:
        if context.environ.get("LAVA_DEBUG"):
            raise
        if not context.acted:
            context.need_own_process()  # lava's files may have changed since this server was started
        context.err(f"internal error (LAVA_DEBUG=1 shows more): {type(error).__name__}: {error}\n")
        return LSF_FAILED


def start(run: Callable[[Context], int], argv: list[str] | None) -> int:
    """Run a command for the caller of this process; its exit status."""
    try:
        return finish(run, of_process(argv))
    except KeyboardInterrupt:
        return INTERRUPTED

"""blaunch: start tasks on the hosts of the job that it runs in, as rsh would, and be them for whoever started it.

Rule: standard library only, and little of it. What it starts is the job's on each host; this process only passes bytes,
signals and exit codes on. The least bytes wait here: no stream runs ahead of the one who reads it.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from socket import AF_UNIX, SO_PEERCRED, SOL_SOCKET, gethostname, socket
from struct import unpack

from cli.common import taskframes as wire
from cli.common.fail import LSF_FAILED, Fail
from cli.common.frames import encode
from cli.common.targets import USAGE, choose, read_words, slots_of
from cli.common.version import version_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PASSED_ON = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM,
    signal.SIGXCPU,
)  # fmt: skip
PIECE = 4096
"""What poll calls writable takes this much without waiting."""


class Launch:
    """Tasks of one command, over one connection."""

    def __init__(self, link: socket, with_input: bool) -> None:
        self._link = link
        self._link.setblocking(False)
        self._out = bytearray()
        self._came = bytearray()
        self._room: dict[int, int] = {}  # task -> bytes of standard input it takes now
        self._left: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._owed: dict[int, list[tuple[int, int]]] = {1: [], 2: []}
        self._live: set[int] = set()
        self._with_input = with_input
        self._codes: dict[int, int] = {}
        self._woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _noted)
        self._whole = {fd: _is_file(fd) for fd in (1, 2)}

    def start(self, number: int, asked: dict[str, Any]) -> None:
        """Ask for a task."""
        self._live.add(number)
        self._codes[number] = LSF_FAILED
        self._out += wire.pack(wire.START, number, encode(asked).encode("ascii"))

    def hello(self, token: str) -> None:
        """Say whose job this is."""
        self._out += wire.pack(wire.HELLO, 0, token.encode())

    def run(self) -> int:
        """Until every task has ended and all is written: the first exit code that is not 0."""
        while self._live or any(self._left.values()):
            self._turn()
        return next((code for _, code in sorted(self._codes.items()) if code), 0)

    def _turn(self) -> None:
        poll = select.poll()
        watched = {self._woken: select.POLLIN}
        if self._live:
            watched[self._link.fileno()] = select.POLLIN | (select.POLLOUT if self._out else 0)
        if self._with_input and self._input_room() > 0:
            watched[0] = select.POLLIN
        for fd, waiting in self._left.items():
            if waiting:
                watched[fd] = select.POLLOUT
        for fd, events in watched.items():
            poll.register(fd, events)
        for fd, events in poll.poll():
            if fd == self._woken:
                self._pass_signals()
            elif fd == 0:
                self._read_input()
            elif fd in self._left:
                self._write(fd)
            elif events & select.POLLOUT:
                self._send()
            if fd == self._link.fileno() and events & ~select.POLLOUT:
                self._receive()

    def _pass_signals(self) -> None:
        for number in os.read(self._woken, 4096):
            if number in PASSED_ON:
                for task in self._live:
                    self._out += wire.pack(wire.SIGNAL, task, bytes((number,)))

    # -- standard input: every task gets all of it -------------------------------------------------------------------

    def _input_room(self) -> int:
        """0 until every task has taken what it got."""
        return min((self._room.get(task, 0) for task in self._live), default=0) if not self._out else 0

    def _read_input(self) -> None:
        try:
            content = os.read(0, min(self._input_room(), 32 * 1024))
        except OSError:
            content = b""
        if not content:
            self._with_input = False
        for task in self._live:
            self._room[task] = self._room.get(task, 0) - len(content)
            self._out += wire.pack(wire.DATA, task, b"\0" + content)

    # -- the shepherd ------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        try:
            sent = self._link.send(self._out)
        except BlockingIOError:
            return
        except OSError:
            # Why it closed is still to be read.
            self._out.clear()
            return
        del self._out[:sent]

    def _receive(self) -> None:
        try:
            data = self._link.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._came += data
        for kind, number, body in wire.take(self._came):
            self._took(kind, number, body)
        if not data and self._live:
            self._live.clear()
            _complain("the connection to the job's shepherd is lost")

    def _took(self, kind: int, number: int, body: bytes) -> None:
        if kind == wire.DATA:
            fd = body[0]
            if fd in self._left:
                self._left[fd] += body[1:]
                self._owed[fd].append((number, len(body) - 1))
        elif kind == wire.CREDIT:
            self._room[number] = self._room.get(number, 0) + wire.read_credit(body)
        elif kind == wire.EXIT:
            self._codes[number] = wire.read_exit(body)
            self._live.discard(number)
        elif kind == wire.FAIL:
            _complain(body.decode("utf-8", "surrogateescape"))
            if number:
                self._live.discard(number)
            else:
                self._live.clear()

    def _write(self, fd: int) -> None:
        waiting = self._left[fd]
        try:
            written = os.write(fd, waiting if self._whole[fd] else waiting[:PIECE])
        except BlockingIOError:
            return
        except BrokenPipeError:
            os._exit(141)
        except OSError as error:
            _complain(f"standard {'output' if fd == 1 else 'error'}: {error.strerror}")
            os._exit(LSF_FAILED)
        del waiting[:written]
        owed = self._owed[fd]
        while written and owed:
            task, count = owed[0]
            now = min(count, written)
            written -= now
            if now == count:
                owed.pop(0)
            else:
                owed[0] = (task, count - now)
            self._out += wire.credit(task, fd, now)


def _noted(*_: object) -> None:
    """The number is in the wake-up pipe."""


def _is_file(fd: int) -> bool:
    from stat import S_ISREG

    try:
        return S_ISREG(os.fstat(fd).st_mode)
    except OSError:
        return False


def _complain(text: str) -> None:
    sys.stderr.write(f"blaunch: {text}\n")
    sys.stderr.flush()


def _connect(name: str) -> socket:
    """The shepherd's socket; a name that another user took over since is not talked to."""
    for one in (name, *_of_ancestors()):
        link = socket(AF_UNIX)
        try:
            link.connect("\0" + one)
            if unpack("3i", link.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))[1] in (os.getuid(), 0):
                return link
        except OSError:
            pass
        link.close()
    raise Fail("the job's shepherd does not answer: the job is over, or this is not its network namespace")


def _of_ancestors() -> Iterator[str]:
    """Launchers give their ranks the environment of the first host; what started them here has this host's."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return
        for variable in variables:
            if variable.startswith(b"LAVA_TASKS="):
                yield os.fsdecode(variable[11:])


def _run_here(hosts: list[str], here: tuple[str, ...], words: list[str], options: dict[str, str]) -> int:
    """A job of one slot on one host: its tasks are this process's own children."""
    for host in hosts:
        if host not in here:
            raise Fail(f"{host}: not a host of job {os.environ['LSB_JOBID']}")
    if "n" in options:
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    if len(hosts) == 1:
        return _exec(words, options, 1)
    pids = []
    for number in range(1, len(hosts) + 1):
        pid = os.fork()
        if pid == 0:
            os._exit(_exec(words, options, number))
        pids.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    return next((128 - code if code < 0 else code for code in codes if code), 0)


def _exec(words: list[str], options: dict[str, str], number: int) -> int:
    env = {**os.environ, "LSF_PM_TASKID": str(number)}
    argv = ["/bin/sh", "-c", " ".join(words)]
    if "no-shell" in options:
        argv = words
    elif "use-login-shell" in options:
        argv = [os.environ.get("SHELL") or "/bin/sh", "-l", "-c", " ".join(words)]
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        _complain(f"{argv[0]}: {error.strerror}")
        return 127 if isinstance(error, FileNotFoundError) else 126


def run(argv: list[str]) -> int:
    """The command; raises Fail."""
    closed = _closed()
    options, words = read_words(argv)
    if "V" in options:
        print(version_line({}), file=sys.stderr)
        return 0
    if "h" in options or "help" in options:
        print(USAGE, file=sys.stderr)
        return 0
    environ = os.environ
    if not environ.get("LSB_JOBID") or not environ.get("LSB_MCPU_HOSTS"):
        raise Fail("not inside a job: LSB_JOBID and LSB_MCPU_HOSTS are not set")
    slots = slots_of(environ["LSB_MCPU_HOSTS"])
    here = (environ.get("LAVA_HOST", ""), "localhost", "127.0.0.1", gethostname())
    hosts, words = choose(options, words, slots, here, environ.get("PATH", os.defpath))
    if not environ.get("LAVA_TASKS"):
        if sum(count for _, count in slots) > 1:
            raise Fail(f"job {environ['LSB_JOBID']} takes no tasks: lava starts its processes itself (bsub -a)")
        return _run_here(hosts, here, words, options)
    with_input = "n" not in options and 0 not in closed
    launch = Launch(_connect(environ["LAVA_TASKS"]), with_input)
    launch.hello(environ.get("LAVA_TOKEN", ""))
    shell = "none" if "no-shell" in options else "login" if "use-login-shell" in options else "sh"
    asked: dict[str, Any] = {
        "words": words, "shell": shell, "stdin": with_input, "env": dict(environ), "cwd": _folder(),
    }  # fmt: skip
    for number, host in enumerate(hosts, 1):
        launch.start(number, {**asked, "host": host, "task": number})
    return launch.run()


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _closed() -> list[int]:
    """The standard descriptors that the caller has closed; opened here, or a socket of ours would get their numbers."""
    found = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            found.append(fd)
            os.open("/dev/null", os.O_RDWR)
    return found


def main(argv: list[str] | None = None) -> int:
    """The program."""
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except Fail as fail:
        _complain(fail.text)
        return fail.status

"""blaunch: start tasks on the hosts of the job that it runs in, as rsh would, and represent them to its parent.

Rule: standard library only, and little of it. The tasks belong to the job on each host; this process only passes bytes,
signals and exit codes on. It buffers little: a stream is read no faster than its reader takes it.
"""

from __future__ import annotations

import os
import signal
import sys
from socket import AF_UNIX, SO_PEERCRED, SOL_SOCKET, gethostname, socket
from struct import unpack

from cli.client.context import Fail
from cli.terminal.gone import link_of
from cli.terminal.targets import USAGE, by_name, choose, read_words, slots_of
from proto.version import PRODUCT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.client.frames import Frame


def _complain(text: str) -> None:
    sys.stderr.write(f"blaunch: {text}\n")
    sys.stderr.flush()


def _connect(name: str) -> socket:
    """A connection to the shepherd. The abstract name may belong to another user by now, so its owner is checked. Raises Fail."""
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
    """LAVA_TASKS of this process's ancestors: a launcher gives its ranks the environment of the first host, so that the name of
    this host's shepherd is found only in the processes that started them here.
    """
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
    """Run the tasks of a job of one slot on one host as children of this process; the first exit code that is not 0."""
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
    """Start the tasks and wait for them; the first exit code that is not 0. Raises Fail."""
    closed = _closed()
    options, words = read_words(argv)
    if "V" in options:
        print(PRODUCT, file=sys.stderr)
        return 0
    if options.keys() & {"h", "help", "-help"}:
        print(USAGE, file=sys.stdout if "-help" in options else sys.stderr)
        return 0
    environ = os.environ
    if not environ.get("LSB_JOBID") or not environ.get("LSB_MCPU_HOSTS"):
        raise Fail("not inside a job: LSB_JOBID and LSB_MCPU_HOSTS are not set")
    if environ.get("LSB_DJOB_DISABLED"):
        raise Fail(f"job {environ['LSB_JOBID']} takes no tasks: its application profile says so (DJOB_DISABLED)")
    slots = slots_of(environ["LSB_MCPU_HOSTS"])
    here = (environ.get("LAVA_HOST", ""), "localhost", "127.0.0.1", gethostname())
    chosen, words = choose(options, words, slots, here, environ.get("PATH", os.defpath))
    hosts = by_name(chosen, [host for host, _ in slots], here, environ.get("LAVA_PEERS", ""))
    if not environ.get("LAVA_TASKS"):
        if sum(count for _, count in slots) > 1:
            raise Fail(f"job {environ['LSB_JOBID']} takes no tasks: lava starts its processes itself (bsub -a)")
        return _run_here(hosts, here, words, options)
    with_input = "n" not in options and 0 not in closed
    launch = link_of(environ)(_connect(environ["LAVA_TASKS"]), with_input, _complain)
    launch.hello(environ.get("LAVA_TOKEN", ""))
    shell = "none" if "no-shell" in options else "login" if "use-login-shell" in options else "sh"
    asked: Frame = {
        "words": words,
        "shell": shell,
        "stdin": with_input,
        "env": dict(environ),
        "cwd": _folder(),
    }
    nth = dict.fromkeys(hosts, 0)
    for number, host in enumerate(hosts, 1):
        launch.start(number, {**asked, "host": host, "task": number, "nth": nth[host], "of": hosts.count(host)})
        nth[host] += 1
    return launch.run()


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"


def _closed() -> list[int]:
    """The standard descriptors that the caller had closed; they are opened on /dev/null, or a socket would get their numbers."""
    found = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            found.append(fd)
            os.open("/dev/null", os.O_RDWR)
    return found


def main(argv: list[str] | None = None) -> int:
    try:
        return run(sys.argv[1:] if argv is None else argv)
    except Fail as fail:
        _complain(fail.text)
        return fail.status

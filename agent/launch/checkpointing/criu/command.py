"""The program ``criu``: where it is, and how it is run in a job's namespaces."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence

from agent.launch.checkpointing.asked import CheckpointError
from agent.launch.checkpointing.criu import namespaces

FOLDERS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ERROR = re.compile(r"\bError \([^)]*\): (.*)")
_HARMLESS = ("net: Unexpected error", "rlimit: Can't setup RLIMIT_NOFILE")
"""What CRIU says of every dump without privileges."""
_SIGNALS = [one for one in signal.valid_signals() if one not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD)]


def find(name: str) -> str:
    """The path of the program, whatever PATH a job has; CheckpointError: it is not on this host."""
    found = shutil.which(name, path=FOLDERS)
    if found is None:
        raise CheckpointError(f"checkpoint method criu: {name} is not on this host")
    return found


def check_namespaces() -> None:
    """CheckpointError: this user may not make what a job of this method runs in."""
    code, said = apart(_settle_in_child, namespaces.make)
    if code:
        raise CheckpointError(f"checkpoint method criu: {said}")


def _settle_in_child() -> tuple[int, str]:
    return apart(lambda: (0, ""), namespaces.settle)


def run(program: str, words: Sequence[str], timeout: float, keep: Sequence[int] = ()) -> tuple[int, str]:
    """(exit status, its first error) of CRIU, with all capabilities in this user namespace. ``keep``: files that it inherits."""

    def prepare() -> None:
        default_signals()
        namespaces.keep_capabilities()

    with open(os.memfd_create("criu"), "w+b") as log:
        process = subprocess.Popen(
            [program, *words, "--unprivileged", "-v2"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=keep,
            preexec_fn=prepare,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return 1, f"it did not end within {timeout:.0f} seconds, and was killed"
        finally:
            if process.returncode:  # helpers of its own do not end with it
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if not code:
            return 0, ""
        log.seek(0)
        said = log.read().decode("utf-8", "replace")
    errors = [match[1] for line in said.splitlines() if (match := _ERROR.search(line)) and not match[1].startswith(_HARMLESS)]
    how = f"it was killed by signal {-code}" if code < 0 else f"it ended with exit code {code}"
    return code, errors[0] if errors else how


def default_signals() -> None:
    """What is executed next ignores none."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def ignore_signals() -> None:
    """This process and those that it forks live as long as the job's: signals to its process groups are for the job."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def apart(work: Callable[[], tuple[int, str]], enter: Callable[[], None]) -> tuple[int, str]:
    """(status, line) of some work in a child, which enters other namespaces first."""
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        code, said = 1, ""
        try:
            enter()
            code, said = work()
        except (OSError, CheckpointError) as e:
            said = getattr(e, "strerror", None) or str(e)
        finally:
            os.write(write_end, said[:2000].encode("utf-8", "surrogateescape"))
            os._exit(min(abs(code), 255))
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        said = file.read().decode("utf-8", "replace")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said

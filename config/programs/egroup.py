"""Members of groups as the site's own program says them, where GROUP_MEMBER is ``!``: LSF's egroup, in LSF_SERVERDIR.

``egroup -u GROUP`` prints the users of a user group, ``egroup -m GROUP`` the hosts of a host group, with blanks between them.
Rule: it is a process of its own with a time limit, as it may ask a directory of users; root runs only what root alone writes.
"""

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from typing import IO

from config.programs.owner import only_root_writes

LONGEST = 30.0
"""Seconds that one answer may take."""
LARGEST = 4 * 1024 * 1024
"""Bytes of one answer."""
TURN = 0.05
"""Seconds after which it is seen how large an answer that goes on has become."""
_MEMBER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.$@-]{0,253}")


class Egroup:
    """The program of one LSF_SERVERDIR. ``failed``: the groups for which it had no answer."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "egroup") if folder else ""
        self.failed: list[str] = []
        self._hangs = False
        """It took too long for one group, and is not asked for others: with many, lavad would not start for hours."""

    def members(self, group: str, of_hosts: bool) -> tuple[str, ...]:
        """The members of a group; raises ValueError with the reason why there is no answer."""
        try:
            return self._answer("-m" if of_hosts else "-u", group)
        except (OSError, ValueError) as wrong:
            self.failed.append(group)
            raise ValueError(getattr(wrong, "strerror", None) or str(wrong)) from None

    def _answer(self, option: str, group: str) -> tuple[str, ...]:
        path = self._path
        if not path or not os.path.isfile(path) or not os.access(path, os.X_OK):
            raise ValueError("there is no program egroup in LSF_SERVERDIR")
        if os.geteuid() == 0 and not (only_root_writes(path) and only_root_writes(os.path.dirname(path))):
            raise ValueError(f"{path} is not run as root, as others than root may write it")
        with tempfile.TemporaryFile() as output:
            status = self._run([path, option, group], output)
            output.seek(0)
            words = output.read().decode("utf-8", errors="replace").split()
        if status:
            raise ValueError(f"egroup {option} {group} ended with {status}")
        if wrong := next((word for word in words if not _MEMBER.fullmatch(word)), ""):
            raise ValueError(f"egroup {option} {group} says '{wrong[:50]}', which is no name")
        return tuple(words)

    def _run(self, command: list[str], output: IO[bytes]) -> int:
        """Its exit status. Raises ValueError where it takes too long or says too much: half an answer is none."""
        what = " ".join(("egroup", *command[1:]))
        if self._hangs:
            raise ValueError(f"{what} is not run, as egroup took longer than {LONGEST:g} s before")
        until = time.monotonic() + LONGEST
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            while process.poll() is None:
                if time.monotonic() >= until:
                    self._hangs = True
                    raise ValueError(f"{what} takes longer than {LONGEST:g} s")
                _check_size(what, output)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(TURN)
            _check_size(what, output)
            return process.wait()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _check_size(what: str, output: IO[bytes]) -> None:
    if os.fstat(output.fileno()).st_size > LARGEST:
        raise ValueError(f"{what} says more than {LARGEST >> 20} MiB")

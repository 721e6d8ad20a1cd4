"""Members of groups as the site's own program says them, where GROUP_MEMBER is ``!``: LSF's egroup, in LSF_SERVERDIR.

``egroup -u GROUP`` prints the users of a user group, ``egroup -m GROUP`` the hosts of a host group, with blanks between them.
Rule: it is a process of its own with a time limit, as it may ask a directory of users; root runs only what root alone writes.
"""

import os
import re
import signal
import subprocess
import tempfile

from config.read.owner import only_root_writes

LONGEST = 30.0
"""Seconds that one answer may take."""
LARGEST = 4 * 1024 * 1024
_MEMBER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.$@-]{0,253}")


class Egroup:
    """The program of one LSF_SERVERDIR. ``failed``: the groups for which it had no answer."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "egroup") if folder else ""
        self.failed: list[str] = []

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
            process = subprocess.Popen(
                [path, option, group], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL, start_new_session=True
            )
            try:
                status = process.wait(LONGEST)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise ValueError(f"egroup {option} {group} takes longer than {LONGEST:g} s") from None
            output.seek(0)
            words = output.read(LARGEST).decode("utf-8", errors="replace").split()
        if status:
            raise ValueError(f"egroup {option} {group} ended with {status}")
        if wrong := next((word for word in words if not _MEMBER.fullmatch(word)), ""):
            raise ValueError(f"egroup {option} {group} says '{wrong[:50]}', which is no name")
        return tuple(words)

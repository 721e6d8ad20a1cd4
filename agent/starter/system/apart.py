"""What the processes of a job do not share with the daemons: the session keyring and the protection from the OOM killer.

Rule: set in the shepherd, before it becomes the user; its tasks inherit it. Where the starter is not root, nothing is set.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform

_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}.get(platform.machine(), 0)
_JOIN_SESSION_KEYRING = 1
_CLEAR = 7
_SESSION_KEYRING = -3
_OOM = "/proc/self/oom_score_adj"

_syscall = ctypes.CDLL(None, use_errno=True).syscall
_syscall.restype = ctypes.c_long


class _Keyring:
    """Whether this process has a session keyring of its own; else it is that of whoever started the daemon."""

    own = False


def new_session_keyring() -> None:
    """Leave the daemon's session keyring for a new, empty one; OSError when there is none to be had.

    To be called as root: the keyring is then no part of the user's quota (/proc/sys/kernel/keys/maxkeys), which has room for
    200 of them. The user has all rights to it but those of its owner, as a process that possesses it. A kernel without keys
    has nothing to leave.
    """
    if _keyctl(_JOIN_SESSION_KEYRING, 0) < 0 and (number := ctypes.get_errno()) != errno.ENOSYS:
        raise OSError(number, os.strerror(number))
    _Keyring.own = True


def keyring_is_own() -> None:
    """Native code does the same in each shepherd that this process forks."""
    _Keyring.own = True


def has_own_keyring() -> bool:
    """Whether this process has, or is to have, a session keyring of its own."""
    return _Keyring.own


def clear_session_keyring() -> None:
    """Remove what a job left in its session keyring. Where its user has made that impossible, take a new one."""
    if _Keyring.own and _keyctl(_CLEAR, _SESSION_KEYRING) < 0:
        _keyctl(_JOIN_SESSION_KEYRING, 0)


def _keyctl(operation: int, argument: int) -> int:
    if not _KEYCTL:
        ctypes.set_errno(errno.ENOSYS)
        return -1
    found: int = _syscall(*map(ctypes.c_long, (_KEYCTL, operation, argument, 0, 0, 0)))
    return found


def give_up_protection(score: int) -> None:
    """Raise oom_score_adj to ``score`` if it is lower (proc(5)): the kernel kills a job before a daemon.

    A process that root has set it for cannot lower it again.
    """
    try:
        fd = os.open(_OOM, os.O_RDWR | os.O_CLOEXEC)
        try:
            if int(os.read(fd, 16)) < score:
                os.write(fd, b"%d" % score)
        finally:
            os.close(fd)
    except (OSError, ValueError):  # no /proc: there is nothing to be set
        return

"""User, pid and mount namespaces by system calls that Python lacks: made, joined, and used with all capabilities in them."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct

SHM = "/dev/shm"
_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
_PR_SET_DUMPABLE = 4
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_CAPABILITY_VERSION_3 = 0x20080522
_NOT_OF_A_USER = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID: with them CRIU becomes user 0 of the namespace, whom only root's own has."""
_KINDS = ("user", "pid", "mnt")
_libc = ctypes.CDLL(None, use_errno=True)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def become(uid: int) -> None:
    """Become another user, who owns this process as if that had started it."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def make(network: bool = False) -> None:
    """Leave for new ones, in which this user keeps its number and no other has one. The next child is the first process there.

    ``network``: one of its own, with nothing but 127.0.0.1.
    """
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEWUSER | _NEWPID | _NEWNS | (_NEWNET if network else 0)), "namespaces cannot be made")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def settle(network: bool = False) -> None:
    """As the first process: mounts of its own, the /proc of these pids, an empty /dev/shm; ``network``: as in ``make``."""
    _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mounts cannot be made private")
    flags = ctypes.c_ulong(_MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _check(_libc.mount(b"proc", b"/proc", b"proc", flags, None), "/proc cannot be mounted")
    _check(_libc.mount(b"shm", SHM.encode(), b"tmpfs", flags, b"mode=1777"), f"{SHM} cannot be mounted")
    if network:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def join(pid: int) -> None:
    """Enter those of a process; the next child is there with its pid, too."""
    kinds = _KINDS if os.readlink(f"/proc/{pid}/ns/net") == os.readlink("/proc/self/ns/net") else (*_KINDS, "net")
    files = [os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    for fd in files:
        _check(_libc.setns(fd, 0), f"the namespaces of process {pid} cannot be entered")
        os.close(fd)


def set_next_pid(pid: int) -> None:
    """The next child gets this pid."""
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
        file.write(str(pid - 1))


def keep_capabilities() -> None:
    """What is executed next has the capabilities that this process has in its user namespace."""
    header, data = _Header(_CAPABILITY_VERSION_3, 0), (_Data * 2)()
    _check(_libc.capget(ctypes.byref(header), data), "capget")
    if os.getuid():
        data[0].permitted &= ~_NOT_OF_A_USER
    for one in data:
        one.effective = one.inheritable = one.permitted
    _check(_libc.capset(ctypes.byref(header), data), "capset")
    for number in range(64):
        if data[number // 32].permitted >> (number % 32) & 1:
            _check(_libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number, 0, 0), "prctl")

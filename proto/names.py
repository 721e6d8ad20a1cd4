"""Users by name and by number, as the system's databases have them (nsswitch.conf: files, LDAP, sssd).

Rule: that a database does not answer is no proof that there is no such user. Python's ``pwd`` raises KeyError for both; the C
library tells them apart. Whoever calls this may wait long: never in the thread of a daemon's loop.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import NamedTuple

_LARGEST = 1 << 20
"""Bytes of one entry, at most."""
_ERANGE = 34


class NoAnswer(Exception):
    """The databases cannot be asked now; the text says why."""


class Entry(NamedTuple):
    """A user as the databases have it."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str


class _Passwd(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("password", ctypes.c_char_p),
        ("uid", ctypes.c_uint32),
        ("gid", ctypes.c_uint32),
        ("gecos", ctypes.c_char_p),
        ("home", ctypes.c_char_p),
        ("shell", ctypes.c_char_p),
    )


_libc = ctypes.CDLL(None)


def find_user(name: str) -> Entry | None:
    """The user of this name; None: there is none. Raises NoAnswer."""
    if "\0" in name:
        return None
    return _ask(_libc.getpwnam_r, ctypes.c_char_p(os.fsencode(name)))


def find_name(uid: int) -> str | None:
    """The name of a user number; None: it has none. Raises NoAnswer."""
    entry = _ask(_libc.getpwuid_r, ctypes.c_uint32(uid))
    return None if entry is None else entry.name


def _ask(call: Callable[..., int], what: object) -> Entry | None:
    size = 4096
    while True:
        buffer = ctypes.create_string_buffer(size)
        row, found = _Passwd(), ctypes.POINTER(_Passwd)()
        error = call(what, ctypes.byref(row), buffer, ctypes.c_size_t(size), ctypes.byref(found))
        if error == _ERANGE and size < _LARGEST:
            size *= 4
            continue
        # the C library gives 0 where a database has said that there is none, and an error only where none could
        if error:
            raise NoAnswer(os.strerror(error))
        if not found:
            return None
        texts = (os.fsdecode(text or b"") for text in (row.name, row.home, row.shell))
        name, home, shell = texts
        return Entry(name, row.uid, row.gid, home, shell)

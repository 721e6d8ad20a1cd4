"""What is written for a job when it is over: its report, and output that was kept, into the files that its user named.

Rule: done by a shepherd that is that user, who has no part meanwhile; the first line that goes wrong is the answer.
"""

from __future__ import annotations

import os
import stat
from typing import Any

_CHUNK = 1 << 20
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK


def write(order: dict[str, Any]) -> dict[str, Any]:
    """Carry out an ``append`` or a ``deliver``: the answer to it."""
    answer: dict[str, Any] = {"is": "wrote", "id": order["id"]}
    path = str(order.get("path"))
    try:
        os.umask(int(order.get("umask", 0o022)))
        if order["do"] == "append":
            _append(path, str(order["text"]), bool(order.get("truncate")), bool(order.get("mkdir")))
        else:
            _deliver(path, order)
    except (OSError, ValueError, KeyError) as e:
        answer["error"] = f"{getattr(e, 'filename', None) or path}: {getattr(e, 'strerror', None) or e}"
    return answer


def _append(path: str, text: str, truncate: bool, mkdir: bool) -> None:
    fd = _open(path, truncate, mkdir)
    try:
        _put(fd, text.encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)


def _deliver(path: str, order: dict[str, Any]) -> None:
    """Header, kept output, what stands behind it; then kept errors. What is delivered is removed, and only that."""
    truncate, mkdir = bool(order.get("truncate")), bool(order.get("mkdir"))
    kept = str(order["from"])
    fd = _open(path, truncate, mkdir)
    try:
        _put(fd, str(order.get("header") or "").encode("utf-8", "surrogateescape"))
        _copy(kept, fd)
        _put(fd, str(order.get("text") or "").encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)
    os.unlink(kept)
    if kept_error := order.get("from_error"):
        fd = _open(str(order["error"]), bool(order.get("error_truncate")), mkdir)
        try:
            _copy(str(kept_error), fd)
        finally:
            os.close(fd)
        os.unlink(str(kept_error))


def _open(path: str, truncate: bool, mkdir: bool) -> int:
    if mkdir:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    # A pipe without a reader must not hold up the shepherd.
    fd = os.open(path, _FLAGS | (os.O_TRUNC if truncate else 0), 0o666)
    if stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "a pipe", path)
    os.set_blocking(fd, True)
    return fd


def _copy(path: str, to: int) -> None:
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        while data := os.read(source, _CHUNK):
            _put(to, data)
    finally:
        os.close(source)


def _put(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]

"""Calls and results as bytes: cloudpickle where it is installed, else pickle, which finds functions by their names."""

from __future__ import annotations

import os
import pickle
import sys
from typing import TYPE_CHECKING, NamedTuple

from lava_client import worker
from lava_client.errors import InitializerFailed, RemoteError, RemoteTraceback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any


class Result(NamedTuple):
    """How a call ended: its value, or an error."""

    value: Any
    error: BaseException | None


def dumps(value: object) -> bytes:
    """Raises what the pickler raises for a value that it cannot take."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    data: bytes = cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return data


def call(function: Callable[..., object], arguments: tuple[object, ...], named: Mapping[str, object]) -> bytes:
    """One call."""
    return dumps((function, arguments, dict(named), False))


def chunk(function: Callable[..., object], arguments: Iterable[tuple[object, ...]]) -> bytes:
    """Several calls of a function; the result is a list."""
    return dumps((function, list(arguments), {}, True))


def setting(calls: Iterable[bytes], main: tuple[str, str] | None, initializer: bytes | None, ranks: bool) -> bytes:
    """What the jobs of a batch take over of this process; ``main`` where a call refers to the main module."""
    refers = any(b"__main__" in blob for blob in (*calls, initializer or b""))
    found = {
        "path": [os.path.abspath(entry) for entry in sys.path],
        "argv": sys.argv,
        "main": main if refers else None,
        "initializer": initializer,
        "ranks": ranks,
    }
    return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)


def find_main() -> tuple[str, str] | None:
    """How a worker finds this process's main module. At the end of the interpreter it has no name any more."""
    main = sys.modules["__main__"]
    name = getattr(getattr(main, "__spec__", None), "name", None)
    if name:
        return "name", str(name)
    path = getattr(main, "__file__", None)
    return ("path", os.path.abspath(path)) if path and os.path.exists(path) else None


def read_result(data: bytes) -> Result:
    """What a worker has written."""
    kind = data[:1]
    if kind == worker.RESULT:
        try:
            return Result(pickle.loads(memoryview(data)[1:]), None)
        except BaseException as error:  # its own code runs, which may be to end the interpreter
            failed = RemoteError(f"the result cannot be read here: {type(error).__name__}: {error}")
            failed.__cause__ = error
            return Result(None, failed)
    pickled, words, lines = pickle.loads(memoryview(data)[1:])
    raised: BaseException
    try:
        raised = pickle.loads(pickled) if pickled else RemoteError(words)
    except BaseException:
        raised = RemoteError(words)
    if kind == worker.NOT_STARTED:
        raised = InitializerFailed(f"the initializer raised {words}")
    raised.__cause__ = RemoteTraceback(lines)
    return Result(None, raised)

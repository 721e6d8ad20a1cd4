"""Runs one call as a job of lava: ``python worker.py BATCH [NUMBER]``. It imports the standard library only, and nothing of this
package, so that a job begins quickly.

A batch holds calls; the number is that of the element of the array, 1 for a job that is none. Where BATCH is ``-`` it comes on
standard input and the result goes to standard output: hosts that share no folder with the one that submits.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, BinaryIO

NUMBER = struct.Struct("<I")
PLACE = struct.Struct("<Q")
RESULT, RAISED, NOT_STARTED = b"R", b"E", b"I"
"""What a result begins with: the value; an exception; an exception of the initializer."""
NO_FOLDER = 72
"""The exit code where this host does not see the folder of the calls (EX_OSFILE)."""
MARK = "<<lava_client result: {} bytes>>"
THROUGH_LAVA = "-"


def write_batch(file: BinaryIO, setting: bytes, calls: Sequence[bytes]) -> None:
    """Write a batch: how many calls, where each begins, the setting that all share, the calls."""
    blobs = [setting, *calls]
    at = NUMBER.size + PLACE.size * (len(blobs) + 1)
    places = [at]
    for blob in blobs:
        at += len(blob)
        places.append(at)
    file.write(NUMBER.pack(len(calls)) + b"".join([PLACE.pack(place) for place in places]))
    for blob in blobs:
        file.write(blob)


def read_call(file: BinaryIO, number: int) -> tuple[bytes, bytes]:
    """(setting, call) of a batch."""
    return _blob(file, 0), _blob(file, number)


def _blob(file: BinaryIO, number: int) -> bytes:
    file.seek(NUMBER.size + PLACE.size * number)
    (begin,), (end,) = PLACE.unpack(file.read(PLACE.size)), PLACE.unpack(file.read(PLACE.size))
    file.seek(begin)
    return file.read(end - begin)


def result_name(batch: str, number: int, rank: str = "") -> str:
    """The file of a result."""
    return f"{batch}.{number}.result" + (f".{rank}" if rank else "")


def log_name(batch: str, number: int) -> str:
    """The file of what a call prints."""
    return f"{batch}.{number}.log"


def become(setting: dict[str, Any]) -> None:
    """Take over the path of modules of the process that submits, and its main module where calls refer to it."""
    sys.path[:] = setting["path"]
    sys.argv[:] = setting["argv"]
    if setting["main"]:
        from multiprocessing import spawn

        # functions of the main module are found in it, as multiprocessing finds them
        kind, name = setting["main"]
        getattr(spawn, f"_fixup_main_from_{kind}")(name)


def carried_out(setting: dict[str, Any], call: bytes) -> bytes:
    """The result of a call, pickled."""
    try:
        become(setting)
        if setting["initializer"] is not None:
            try:
                initializer, arguments = pickle.loads(setting["initializer"])
                initializer(*arguments)
            except BaseException as error:
                return NOT_STARTED + _pickled(error)
        function, arguments, named, is_chunk = pickle.loads(call)
        value = [function(*each) for each in arguments] if is_chunk else function(*arguments, **named)
        return RESULT + _dumps(value)
    except BaseException as error:
        return RAISED + _pickled(error)


def _dumps(value: object) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        try:
            import cloudpickle
        except ImportError:
            pass
        else:
            data: bytes = cloudpickle.dumps(value)
            return data
        raise


def _pickled(error: BaseException) -> bytes:
    """An exception, its words and its traceback; without the exception where it cannot be brought to where it is awaited."""
    import traceback

    lines = traceback.format_exception(type(error), error, error.__traceback__)
    words = traceback.format_exception_only(type(error), error)[-1].strip()
    error.__traceback__ = None
    try:
        data = _dumps(error)
        pickle.loads(data)
    except BaseException:  # its own code runs, which may end the interpreter
        data = b""
    return pickle.dumps((data, words, "".join(lines)), pickle.HIGHEST_PROTOCOL)


def _write(path: str, data: bytes) -> None:
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.replace(path + ".new", path)


def _flush() -> None:
    """The call may have closed the standard output, or put something else in its place: its result counts all the same."""
    try:
        sys.stdout.flush()
    except Exception:
        pass


def _in_folder(batch: str, number: int) -> int:
    try:
        with open(batch, "rb") as file:
            shared, call = read_call(file, number)
    except OSError as error:
        host = os.environ.get("LAVA_HOST") or os.uname().nodename
        sys.stderr.write(f"host {host} does not see {batch}: {error.strerror}\n")
        return NO_FOLDER
    log = os.open(log_name(batch, number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    setting = pickle.loads(shared)
    data = carried_out(setting, call)
    _flush()
    _write(result_name(batch, number, os.environ.get("PMI_RANK", "") if setting["ranks"] else ""), data)
    return 0 if data[:1] == RESULT else 1


def _through_lava(number: int) -> int:
    import base64
    import io

    shared, call = read_call(io.BytesIO(sys.stdin.buffer.read()), number)
    output = os.dup(1)
    data = carried_out(pickle.loads(shared), call)
    _flush()
    text = base64.b64encode(data).decode("ascii")
    with open(output, "w", encoding="ascii") as file:
        file.write(f"\n{MARK.format(len(text))}\n{text}\n")
    return 0 if data[:1] == RESULT else 1


def main(argv: list[str]) -> int:
    """Carry out the call that the arguments name; the exit code."""
    number = int(argv[2]) if len(argv) > 2 else int(os.environ.get("LSB_JOBINDEX") or 0) or 1
    return _through_lava(number) if argv[1] == THROUGH_LAVA else _in_folder(argv[1], number)


if __name__ == "__main__":
    sys.path.pop(0)  # this package's own folder
    sys.exit(main(sys.argv))

"""Functions that jobs of an executor run; a module of its own, so that a job imports nothing else."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from lava_client import Executor

INITIALIZED: list[str] = []


class Unpicklable(Exception):
    """Can be brought nowhere."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


class Stubborn(Exception):
    """Can be pickled, and not read again."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first)


def surroundings() -> tuple[str, str, str]:
    return os.environ.get("WHO", ""), str(Path.cwd()), ",".join(INITIALIZED)


def initialize(word: str) -> None:
    if word == "bad":
        raise ValueError("no such word")
    INITIALIZED.append(word)


def raise_runtime_error() -> None:
    raise RuntimeError(123)  # some comment


def raise_unpicklable() -> None:
    raise Unpicklable("held")


def raise_stubborn() -> None:
    raise Stubborn("one", "two")


class Final:
    """Can be pickled; who reads it again ends."""

    def __reduce__(self) -> tuple[object, ...]:
        return (sys.exit, (5,))


class FinalError(Exception):
    """Can be pickled; who reads it again ends."""

    def __reduce__(self) -> tuple[object, ...]:
        return (sys.exit, (5,))


def give_final() -> object:
    return Final()


def raise_final() -> None:
    raise FinalError("of all")


def close_output() -> str:
    print("printed")  # noqa: T201
    sys.stdout.close()
    return "value"


def give_a_lock() -> object:
    return threading.Lock()


def die(last_words: str) -> None:
    print(last_words, flush=True)  # noqa: T201
    os.kill(os.getpid(), 9)


def die_once(path: str) -> str:
    if not Path(path).exists():
        Path(path).touch()
        die("the first time")
    return "the second time"


def fail_once(path: str) -> str:
    if not Path(path).exists():
        Path(path).touch()
        raise OSError("the first time")
    return "the second time"


def reverse(data: bytes) -> bytes:
    return data[::-1]


def rank_and_size(value: int) -> tuple[int, str, str]:
    return value, os.environ["PMI_RANK"], os.environ["PMI_SIZE"]


def wait_for(path: str) -> str:
    """Make PATH.here, and return what PATH holds once that is something."""
    Path(path + ".here").touch()
    while not Path(path).exists() or not (text := Path(path).read_text()):
        threading.Event().wait(0.02)
    return text


def in_a_job_of_its_own(value: int) -> int:
    with Executor() as inner:
        return inner.submit(pow, value, 2).result()

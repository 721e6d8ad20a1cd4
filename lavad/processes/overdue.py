"""Says from a thread of its own that a call does not end: what waits for a disk that hangs can say nothing itself."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator


class Overdue:
    """``say`` is told ``why`` once a call of ``watched`` has taken ``seconds``, and "" when it has ended after all."""

    def __init__(self, say: Callable[[str], None], why: str, seconds: float) -> None:
        self._say = say
        self._why = why
        self._seconds = seconds
        self._lock = threading.Lock()
        self._began = math.inf
        self._told = False
        threading.Thread(target=self._look, daemon=True).start()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """The call is made in this context, by one thread at a time."""
        with self._lock:
            self._began = time.monotonic()
        try:
            yield
        finally:
            with self._lock:
                self._began = math.inf
                if self._told:
                    self._told = False
                    self._say("")

    def _look(self) -> None:
        while True:
            time.sleep(self._seconds / 4)
            with self._lock:
                if not self._told and time.monotonic() - self._began >= self._seconds:
                    self._told = True
                    with contextlib.suppress(OSError):  # nobody is there any more who would hear it
                        self._say(self._why)

"""CPython's own tests of executors, of the interpreter that runs this, with the executor of lava in the place of theirs.

Left out is what asks for processes of the pool, for modules' globals of the test, or for a private class of CPython's.
"""

from __future__ import annotations

import importlib
import sys
import unittest
from typing import Any

from lava_client import Executor

PARTS = ("executor", "util", "test_wait", "test_as_completed", "test_process_pool", "test_shutdown", "test_init")


def find(name: str) -> Any:
    """A class of the suite, which is one module before Python 3.13."""
    suite = importlib.import_module("test.test_concurrent_futures")
    for module in (suite, *(f"{suite.__name__}.{part}" for part in PARTS if hasattr(suite, "__path__"))):
        found = getattr(importlib.import_module(module) if isinstance(module, str) else module, name, None)
        if found is not None:
            return found
    raise AttributeError(name)


class Ours(find("ExecutorMixin")):  # type: ignore[misc]
    executor_type = Executor


class Calls(Ours, find("ExecutorTest"), find("BaseTestCase")):  # type: ignore[misc]
    test_map_chunksize = find("ProcessPoolExecutorTest").test_map_chunksize


class Waits(Ours, find("WaitTests"), find("BaseTestCase")):  # type: ignore[misc]
    pass


class AsCompleted(Ours, find("AsCompletedTests"), find("BaseTestCase")):  # type: ignore[misc]
    pass


class Shutdown(Ours, find("BaseTestCase")):  # type: ignore[misc]
    test_run_after_shutdown = find("ExecutorShutdownTest").test_run_after_shutdown
    test_hang_issue12364 = find("ExecutorShutdownTest").test_hang_issue12364
    test_cancel_futures = find("ExecutorShutdownTest").test_cancel_futures


class Initializer(find("InitializerMixin"), find("BaseTestCase")):  # type: ignore[misc]
    executor_type = Executor


if __name__ == "__main__":
    sys.exit(not unittest.main(exit=False).result.wasSuccessful())

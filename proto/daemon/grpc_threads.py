"""How gRPC reads the sockets of a daemon: in the thread that waits for its calls.

Left alone it reads them in threads of its own, and each message passes through two of them: .2 ms later on an idle machine.
"""

from __future__ import annotations

import os
from importlib import import_module

SWITCH = "GRPC_EXPERIMENTS"
READS = "-event_engine_client,-event_engine_listener"
"""A release of gRPC that does not know these any more says so in the log, and does as it likes."""


def load() -> None:
    """Import gRPC, which looks at this once, as it is imported. What is set already counts instead.

    The variable does not stay: programs that the daemon starts may have a gRPC of their own.
    """
    if SWITCH in os.environ:
        import_module("grpc.aio")
        return
    os.environ[SWITCH] = READS
    try:
        import_module("grpc.aio")
    finally:
        del os.environ[SWITCH]

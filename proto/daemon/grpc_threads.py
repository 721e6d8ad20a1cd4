"""How gRPC reads the sockets of a daemon: in the thread that waits for its calls. And what it does where a daemon forks: nothing.

Left alone it reads them in threads of its own, and each message passes through two of them: .2 ms later on an idle machine.
"""

from __future__ import annotations

import os
from importlib import import_module

SWITCH = "GRPC_EXPERIMENTS"
READS = "-event_engine_client,-event_engine_listener"
"""A release of gRPC that does not know these any more says so in the log, and does as it likes."""
FORKS = "GRPC_ENABLE_FORK_SUPPORT"
"""Whether a fork stops and starts the threads of gRPC, or has it say that it did not: forks of a daemon become programs."""


def load() -> None:
    """Import gRPC, which looks at these once, as it is imported. What is set already counts instead.

    The variables do not stay: programs that the daemon starts may have a gRPC of their own.
    """
    own = {name: value for name, value in ((SWITCH, READS), (FORKS, "0")) if name not in os.environ}
    os.environ.update(own)
    try:
        import_module("grpc.aio")
    finally:
        for name in own:
            del os.environ[name]

"""What holds for every test.

No test asserts on time: an example of hypothesis may take as long as a busy machine needs.

A test that runs a command as another user forks, and gRPC's handlers of forks start its threads again in the child, which abort
before they reach the command: they are off in the tests' own process. Daemons are started without this variable, as a site's are.

Under nohup, or in the background of a shell, a process is started with signals ignored, and so would be each command of a test.
"""

import os
import signal

from hypothesis import settings

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # before anything imports grpc

for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)

settings.register_profile("lava", deadline=None)
settings.load_profile("lava")

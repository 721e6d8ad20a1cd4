"""What holds for every test.

No test asserts on time: an example of hypothesis may take as long as a busy machine needs.

A test that runs a command as another user forks, and gRPC's handlers of forks start its threads again in the child, which abort
before they reach the command: they are off in the tests' own process. Daemons are started without this variable, as a site's are.

Under nohup, or in the background of a shell, a process is started with signals ignored, and so would be each command of a test.

The folders of a run are in one of its own, which every user may pass through: pytest's is closed to others again whenever another
run begins. It goes with the run; where a test has failed, it stays for a day.

What was imported for thousands of tests is looked at for garbage once, and what a test makes when there is more of it.
"""

import contextlib
import gc
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import settings

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # before anything imports grpc

for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)

settings.register_profile("lava", deadline=None)
settings.load_profile("lava")

FOLDERS = "lava-tests."
DAY = 86400.0


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Processes of pytest-xdist are given folders in that of the run."""
    if config.option.basetemp is not None:
        return
    for old in Path(tempfile.gettempdir()).glob(f"{FOLDERS}*"):
        with contextlib.suppress(FileNotFoundError):  # where another run has just begun, too
            if old.stat().st_mtime < time.time() - DAY:
                shutil.rmtree(old, ignore_errors=True)
    config.option.basetemp = Path(tempfile.mkdtemp(prefix=FOLDERS))


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config._tmp_path_factory.getbasetemp().chmod(0o755)  # type: ignore[attr-defined]


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    folder = Path(session.config.option.basetemp)
    if folder.name.startswith(FOLDERS) and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        shutil.rmtree(folder, ignore_errors=True)

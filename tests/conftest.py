"""What holds for every test.

No test asserts on time: an example of hypothesis may take as long as a busy machine needs.

A test that runs a command as another user forks, and gRPC's handlers of forks start its threads again in the child, which abort
before they reach the command: they are off in the tests' own process. Daemons are started without this variable, as a site's are.

Under nohup, or in the background of a shell, a process is started with signals ignored, and so would be each command of a test.
Other users read what tests make, whatever the umask of who runs them.

The folders of a run are in one of its own, which every user may pass through: pytest's is closed to others again whenever another
run begins. It goes with the run; where a test has failed, it stays for a day.

Files of tests that take longest come first, so that no process is alone with one at the end.

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

from tests.support.examples import examples

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"  # before anything imports grpc

for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)

os.umask(0o022)

settings.register_profile("lava", deadline=None, max_examples=examples(100))
settings.load_profile("lava")

TESTS = Path(__file__).parent
FIRST = (
    "integration/site/test_outages.py",
    "integration/parallel/test_example_jobs.py",
    "integration/site/test_exceptions.py",
    "integration/jobs/test_staged_parts.py",
    "integration/agent/test_checkpoint_programs.py",
    "integration/site/test_host_loss.py",
    "integration/site/test_restore_drill.py",
    "compat/test_captures_live.py",
    "integration/parallel/test_other_mpi.py",
    "integration/commands/test_python_client.py",
    "integration/jobs/test_interactive.py",
    "integration/site/test_random_kills.py",
    "integration/site/test_databases_users_and_strangers.py",
    "integration/store/test_prune.py",
    "compat/test_older_stores.py",
    "integration/site/test_installation.py",
    "integration/store/test_fold.py",
    "integration/store/test_backup.py",
    "integration/site/test_queue_while_jobs_run.py",
    "integration/parallel/test_launchers.py",
    "integration/commands/test_pages.py",
    "integration/parallel/test_blaunch.py",
    "integration/site/test_large_scripts.py",
    "integration/agent/test_faults.py",
    "integration/site/test_versions.py",
    "integration/jobs/test_hangs.py",
    "integration/jobs/test_checkpoint_methods.py",
    "compat/test_reference_live.py",
    "integration/site/test_hostile_agents.py",
    "integration/site/test_fence.py",
    "integration/site/test_gpu_driver.py",
    "integration/jobs/test_gpu_use.py",
    "integration/commands/test_replay.py",
    "integration/store/test_commit.py",
    "integration/starter/test_parts.py",
    "integration/starter/test_faults.py",
)
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: place.get(item.path.relative_to(TESTS).as_posix(), len(FIRST)))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    folder = Path(session.config.option.basetemp)
    if folder.name.startswith(FOLDERS) and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        shutil.rmtree(folder, ignore_errors=True)

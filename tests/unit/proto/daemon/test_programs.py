"""The programs of a daemon."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from proto.daemon import programs


@pytest.fixture
def own_policy() -> Iterator[None]:
    former = asyncio.get_event_loop_policy()
    asyncio.set_event_loop_policy(asyncio.DefaultEventLoopPolicy())
    yield
    asyncio.set_event_loop_policy(former)


@pytest.mark.usefixtures("own_policy")
def test_one_runs_where_no_thread_can_be_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def status() -> int:
        process = await asyncio.create_subprocess_exec("sh", "-c", "exit 7")
        return await process.wait()

    monkeypatch.setattr(threading.Thread, "start", none_left)
    programs.wait_by_files()
    assert asyncio.run(status()) == 7


LEAVES = """
import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
from proto.daemon.programs import Account, run_program
nobody = Account("nobody", 65534, 65534, (), "/")
print(asyncio.run(run_program(["/bin/sh", "-c", "sleep 60 </dev/null >/dev/null 2>&1 & echo $!"], 30.0, account=nobody)))
"""


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root, and setpriv")
def test_one_that_leaves_behind_what_may_not_be_killed_has_ended_as_it_did() -> None:
    """As a mailer that goes on as another user; here without the right of root to end processes of others."""
    words = ["setpriv", "--bounding-set=-kill", sys.executable, "-c", LEAVES]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    how, text = re.findall(r"'([^']*)'", done.stdout) or ("", done.stderr)
    if text.isdecimal():
        os.kill(int(text), signal.SIGKILL)
    assert (how, text.isdecimal()) == ("exited with 0", True), done.stderr

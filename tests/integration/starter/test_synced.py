"""What must survive a power cut goes to the disk, and does not stay in the system's memory: a library that is loaded before all
others names each file that is synced.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemons.starters import Rig

SOURCE = Path(__file__).with_name("synced.c")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


class Synced:
    """The names of the files that were synced so far."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def take(self) -> list[str]:
        """Those since this was asked last."""
        found = self._log.read_text().split() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [Path(path).name for path in found]


@pytest.fixture
def synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Synced:
    """Of all processes that are started from here on."""
    library = tmp_path / "synced.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)
    monkeypatch.setenv("SYNCED_LOG", str(tmp_path / "synced"))
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return Synced(tmp_path / "synced")


def test_a_start_is_on_disk_before_it_is_told_and_an_end_at_once(tmp_path: Path, synced: Synced) -> None:
    rig = Rig(tmp_path).start()
    try:
        synced.take()
        rig.order(rig.part("p", f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"))
        rig.pid_of("p")
        assert synced.take() == ["journal"]
        (tmp_path / "go").touch()
        rig.end("p")
        rig.known()  # an answer of the next turn
        assert synced.take() == ["journal"]
        assert b'{"is":"ended","uid":"p","end":{"status":0,' in (tmp_path / "spool-hostA" / "journal").read_bytes()
    finally:
        rig.stop()


OBEYS = "import sys; from agent.parts.spool import Obeyed, Spool; Spool(sys.argv[1]).obey(Obeyed('store', 7))"


def test_the_master_that_is_obeyed_is_on_disk(tmp_path: Path, synced: Synced) -> None:
    subprocess.run([sys.executable, "-c", OBEYS, str(tmp_path / "agent")], check=True, timeout=60)
    (name,) = synced.take()
    assert name.startswith("obeyed.json.")
    assert name.endswith(".new")


COMMITS = """
import sys
from lavad.core.cluster.cluster import Cluster
from lavad.core.events import MasterStarted
from lavad.core.events.apply import apply
from lavad.store.batch import batch_of
from lavad.store.lease import Lease
from lavad.store.writer import Store
store = Store.open(f"sqlite:///{sys.argv[1]}")
epoch = Lease(store.engine).acquire("me", 60)
cluster, event = Cluster(), MasterStarted(at=1.0, epoch=epoch, incarnation="i")
apply(cluster, event)
open(sys.argv[2], "w").close()
store.commit(batch_of(cluster, [event]))
print(open(sys.argv[2]).read())
"""


def test_a_commit_is_on_disk(tmp_path: Path, synced: Synced) -> None:
    argv = [sys.executable, "-c", COMMITS, str(tmp_path / "lava.db"), str(tmp_path / "synced")]
    done = subprocess.run(argv, check=True, timeout=60, capture_output=True, text=True)
    assert str(tmp_path / "lava.db-wal") in done.stdout.split()

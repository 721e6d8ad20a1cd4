"""What daemons save for themselves: a damaged file is as none."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.launch.accounts import Accounts
from agent.launch.site import Site
from agent.monitor.gpu.held import HeldGpus
from agent.parts.host_monitor import HostMonitor
from agent.parts.runner import Runner
from agent.parts.spool import Spool
from agent.starter_client.outgoing import Outgoing
from proto.daemon.saved import read_saved


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    assert read_saved(str(path), dict[str, int]) is None
    path.write_text('{"a": 1}')
    assert read_saved(str(path), dict[str, int]) == {"a": 1}


@pytest.mark.parametrize("damaged", [b"", b'{"a": ', b"\0" * 20, b'{"\xff": 1}', b"[1]"])
def test_no_damaged_file_keeps_an_agent_from_starting(tmp_path: Path, damaged: bytes) -> None:
    for name in ("gpus_held.json", "gpu_use.json", "gpu_modes.json", "work_folders"):
        (tmp_path / name).write_bytes(damaged)
    assert read_saved(str(tmp_path / "gpus_held.json"), dict[str, int]) is None
    site = Site("h1", str(tmp_path), str(tmp_path), str(tmp_path), {})
    Runner(site, Spool(str(tmp_path)), HostMonitor("127.0.0.1", 1, folder=str(tmp_path)), Accounts(), Outgoing())
    assert HeldGpus(str(tmp_path / "gpus_held.json")).why("GPU-1") == ""

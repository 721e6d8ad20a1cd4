"""An agent looks at the GPUs of its host (simulated) as often as its master wants."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.daemons.agent_host import AgentHost
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

SOON = 3.0
"""Less than the pause of an agent that has not heard of its master."""


def test_the_pause_that_the_master_wants_holds_from_the_first_look_on(tmp_path: Path, master: FakeMaster) -> None:
    host = AgentHost(tmp_path, master.address)
    host.start("--gpus", "1")
    try:
        wait_until(lambda: master.heartbeats and master.heartbeats[-1].gpus, 30, "the state of the GPU")
        uuid = master.hellos[-1].facts.gpus[0].uuid
        with subprocess.Popen(["/bin/sleep", "1000"], env={"CUDA_VISIBLE_DEVICES": uuid, "LAVA_SIM_GPU_MB": "3000"}) as user:
            try:
                wait_until(lambda: master.heartbeats[-1].gpus[0].mem_used >= 3000, SOON, lambda: str(master.heartbeats[-1].gpus))
            finally:
                user.kill()
    finally:
        host.stop()

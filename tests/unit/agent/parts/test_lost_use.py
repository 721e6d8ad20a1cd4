"""A part whose shepherd is killed: what it used until then, as the samples saw it, is told with its loss."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

from agent.starter.protocol.reports import Lost, RunningTask, Started
from agent.starter.system.proctree import starttime
from proto import agent_pb2 as pb
from tests.unit.agent.parts.test_runner import Bench


def test_nobody_hides_what_a_job_used_by_killing_its_shepherd(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    monitor, parts = bench.runner._monitor, bench.runner.parts

    async def story(pid: int) -> None:
        bench.order("u", start=True)
        await bench.found()
        parts.reported([Started("u", (RunningTask(0, pid, starttime(pid)),), time.time())])
        seen: dict[str, pb.Usage] = {}
        while "u" not in seen or seen["u"].cpu < 0.05:
            seen = await monitor.usage(list(bench.runner.table))
        bench.runner.outbox.take()
        parts.reported([Lost("u", "the shepherd of 1 was killed by signal 9")])
        (told,) = [report.ended for report in bench.runner.outbox.take() if report.WhichOneof("what") == "ended"]
        assert (told.lost, told.utime) == ("the shepherd of 1 was killed by signal 9", seen["u"].cpu)
        assert told.max_mem >= told.avg_mem > 1000

    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as burner:
        try:
            asyncio.run(asyncio.wait_for(story(burner.pid), 60))
        finally:
            burner.kill()

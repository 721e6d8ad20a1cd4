"""Real agent, real starter, real CRIU: unmodified programs are dumped and restored."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proto import agent_pb2 as pb
from tests.support import criu
from tests.support.daemons.agent_host import AgentHost, ask_for_checkpoint, running, start_order
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

COUNTS = """\
import os, time
log = open("log", "a")
for number in range(int(os.environ["STEPS"])):
    print(number, file=log, flush=True)
    print("says", number, flush=True)
    time.sleep(0.02)
raise SystemExit(7)
"""
PIPELINE = """\
#!/bin/sh
n=0
while [ $n -lt 1000 ]; do n=$((n+1)); echo $n | (cat; sleep 0.01) | sed 's/^/n /'; echo says $n >&3; done 3>&1 >> log
"""


@pytest.fixture
def host(master: FakeMaster, tmp_path: Path) -> Iterator[AgentHost]:
    criu.needed()
    one = AgentHost(tmp_path, master.address, conf=f"LAVA_CRIU={criu.program()}\n")
    with running(one, lambda: master.hellos):
        yield one


class Job:
    """One attempt."""

    def __init__(self, master: FakeMaster, host: AgentHost, attempt: int, restart: int, command: str, **text: object) -> None:
        self.master, self.work, self.asked = master, host.folder / "work", 0
        self.log, self.folder = self.work / "log", self.work / "ckpt" / "7"
        fields: dict[str, object] = {"checkpoint_folder": "ckpt", "checkpoint_method": "criu", "output": "out"} | text
        made = host.text(master, command, **fields)
        self.order = start_order(master, made, attempt=attempt, restart=restart, restart_count=attempt - 1)
        master.order(self.order, texts=(made,))

    def runs(self, lines: int = 5) -> None:
        self.master.wait_for(self.order.uid, "started")
        before = self.lines()
        wait_until(lambda: len(self.lines()) >= len(before) + lines, 20, "the job counts")

    def lines(self) -> list[str]:
        return self.log.read_text().split("\n")[:-1] if self.log.exists() else []

    def ask(self, kill_after: bool = False) -> pb.Granted:
        self.asked += 1
        return ask_for_checkpoint(self.master, self.order, self.asked, kill_after)

    def migrates(self) -> None:
        answer = self.ask(kill_after=True)
        assert answer.ok, answer.why
        assert self.master.wait_for(self.order.uid, "ended").ended.status == signal.SIGKILL


def test_a_program_goes_on_where_it_was_dumped(master: FakeMaster, host: AgentHost) -> None:
    assert list(master.hellos[0].facts.resources) == ["criu"], "the host says that it can"
    (host.folder / "work" / "count.py").write_text(COUNTS)
    command = f"{sys.executable} count.py"
    first = Job(master, host, 1, -1, command, env={"STEPS": "150"})
    first.runs()
    assert first.ask().ok
    first.runs()
    first.migrates()
    made = [one.checkpointed for one in master.of(first.order.uid, "checkpointed")]
    assert [(one.generation, one.method, one.why) for one in made] == [(1, "criu", ""), (2, "criu", "")]
    second = Job(master, host, 2, 2, command, env={"STEPS": "150"})
    second.runs()
    second.migrates()
    (second.folder / "gen-3").rename(second.folder / "away")  # what the log got after the one before goes
    assert not (second.folder / "gen-1").exists(), "two are kept"
    third = Job(master, host, 3, 2, command, env={"STEPS": "150"})
    assert master.wait_for(third.order.uid, "ended").ended.status == 7 << 8
    assert third.lines() == [str(number) for number in range(150)]
    assert "says 149\n" in (third.work / "out").read_text(), "its output goes where this attempt's does"


def test_a_shell_pipeline_in_a_script(master: FakeMaster, host: AgentHost) -> None:
    """While its standard output is a file of its own, that of the job goes on where this attempt's does, too."""
    job = Job(master, host, 1, -1, "", script=PIPELINE)
    for attempt in (2, 3):
        job.runs()
        job.migrates()
        assert job.lines() == [f"n {number}" for number in range(1, len(job.lines()) + 1)]
        job = Job(master, host, attempt, attempt - 1, "", script=PIPELINE)
    job.runs()
    assert job.lines() == [f"n {number}" for number in range(1, len(job.lines()) + 1)]
    said = [line for line in (job.work / "out").read_text().splitlines() if line.startswith("says ")]
    assert said == [f"says {number}" for number in range(1, len(said) + 1)]


def test_a_damaged_image_is_a_crash_and_a_host_that_is_not_alike_refuses(master: FakeMaster, host: AgentHost) -> None:
    job = Job(master, host, 1, -1, "", script=PIPELINE)
    job.runs()
    job.migrates()
    made = job.folder / "gen-1" / "MANIFEST"
    good = made.read_text()
    made.write_text(good.replace('"kernel": "', '"kernel": "99.'))
    refused = master.wait_for(Job(master, host, 2, 1, "", script=PIPELINE).order.uid, "refused").refused
    assert refused.why.startswith("checkpoint generation 1 was made on kernel 99.")
    made.write_text(good.replace('"files"', '"streams": {}, "old"').replace('"old": {', '"files": {}, "x": {'))
    (job.folder / "gen-1" / "inventory.img").write_bytes(b"nonsense")
    again = Job(master, host, 3, 1, "", script=PIPELINE)
    assert master.wait_for(again.order.uid, "ended").ended.status == signal.SIGABRT
    assert "checkpoints: generation 1 cannot be restored: " in (job.work / "out").read_text()

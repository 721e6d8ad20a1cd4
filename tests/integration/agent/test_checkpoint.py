"""Real agent, real starter: a job that writes its own checkpoints when it is asked."""

from __future__ import annotations

import os
import signal
import subprocess

from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, start_order
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

JOB = r"""#!/bin/sh
n=${LAVA_CKPT_GENERATION:-0}
cd $LSB_CHKPNT_DIR
write() { n=$((n+1)); mkdir tmp; echo '{"files": {}}' > tmp/MANIFEST; mv tmp gen-$n; }
trap write USR1
echo ready $LSB_RESTART $LSB_CHKPNT_DIR
while :; do sleep 0.05; done
"""


def run(master: FakeMaster, host: AgentHost, restart: int = -1, **fields: object) -> pb.Order:
    text = host.text(master, "job", script=JOB, output="out", checkpoint_folder="ckpt", checkpoint_method="app", **fields)
    order = start_order(master, text, restart=restart, restart_count=restart + 1)
    master.order(order, texts=(text,))
    out = host.folder / "work" / "out"
    wait_until(lambda: out.exists() and "ready" in out.read_text(), 30, "the job")
    master.wait_for(order.uid, "started")
    return order


def ask(master: FakeMaster, order: pb.Order, number: int, kill_after: bool) -> None:
    request = pb.Signal(number=number, kind="checkpoint", kill_after=kill_after)
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, signal=request))


def test_a_checkpoint_is_asked_for_seen_and_told(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host)
    ask(master, order, 1, False)
    assert master.wait_for(order.uid, "checkpointed").checkpointed.generation == 1
    assert master.wait_for(order.uid, "granted").granted.ok
    ask(master, order, 2, True)
    assert master.wait_for(order.uid, "ended").ended.status == 9
    assert [r.checkpointed.generation for r in master.of(order.uid, "checkpointed")] == [1, 2]
    assert "TERM_CHKPNT" in (host.folder / "work" / "out").read_text()


def test_what_a_job_wrote_as_it_died_is_told_before_its_end_also_by_an_agent_that_comes_later(
    master: FakeMaster, host: AgentHost
) -> None:
    order = run(master, host)
    pid = master.wait_for(order.uid, "started").started.pid
    host.kill()
    os.kill(pid, signal.SIGUSR1)
    gen = host.folder / "work" / "ckpt" / "7" / "gen-1"
    wait_until(gen.exists, 30, "the checkpoint")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30, "the job's end")
    count = len(master.hellos)
    host.start()
    wait_until(lambda: len(master.hellos) > count, 30, "the agent")
    assert master.wait_for(order.uid, "ended").ended.status == signal.SIGKILL
    (told,) = master.of(order.uid, "checkpointed")
    assert (told.checkpointed.generation, told.checkpointed.why) == (1, "")
    assert told.serial < master.of(order.uid, "ended")[0].serial


def test_checkpoints_come_by_themselves_and_a_restart_goes_on_from_one(master: FakeMaster, host: AgentHost) -> None:
    for number, manifest in ((4, '{"files": {}}'), (5, '{"files": {"a": {"size": 1}}}')):
        made = host.folder / "work" / "ckpt" / "7" / f"gen-{number}"
        made.mkdir(parents=True)
        (made / "MANIFEST").write_text(manifest)
        subprocess.run(["chown", "-R", "--reference", made.parents[2], made.parents[1]], check=True)
    order = run(master, host, restart=4, checkpoint_period=1)
    wait_until(lambda: len(master.of(order.uid, "checkpointed")) == 2, 30, "two checkpoints")
    assert [r.checkpointed.generation for r in master.of(order.uid, "checkpointed")] == [5, 6]
    work = host.folder / "work"
    assert (work / "ckpt" / "7" / "gen-5.damaged").exists(), "what is damaged is set aside before the start"
    assert f"ready Y {work / 'ckpt' / '7'}\n" in (work / "out").read_text()
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, kill=pb.Kill()))
    master.wait_for(order.uid, "ended")

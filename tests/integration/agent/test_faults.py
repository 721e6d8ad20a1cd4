"""Real agent, real starter: restarts of each, several masters, other stores, and what reaches a master when."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from agent.starter_client import starterlink
from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, fake_master, run, start_order
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until


def hello_again(master: FakeMaster, host: AgentHost) -> pb.Hello:
    count = len(master.hellos)
    host.start()
    wait_until(lambda: len(master.hellos) > count, 30, "another hello")
    return master.hellos[-1]


def test_hello_tells_what_the_host_is(master: FakeMaster, host: AgentHost) -> None:
    hello = master.hellos[0]
    assert (hello.host, hello.incarnation, hello.epoch, list(hello.parts)) == ("h1", "", 0, [])
    assert hello.facts.ncpus == os.cpu_count()
    assert hello.facts.address == "127.0.0.1"
    assert master.metadata["lava-host"] == "h1"


def test_a_job_goes_on_while_its_agent_is_away_and_its_end_is_told(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3", output="out")
    pid = master.wait_for(order.uid, "started").started.pid
    host.kill()
    hello = hello_again(master, host)
    assert [(part.uid, part.state, part.pid) for part in hello.parts] == [(order.uid, "running", pid)]
    assert (hello.incarnation, hello.epoch) == ("store-1", 1)
    assert hello.sequence == order.start.sequence
    host.kill()
    (host.folder / "work" / "go").touch()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30, "the job's end")
    hello_again(master, host)
    assert master.wait_for(order.uid, "ended").ended.status == 3 << 8
    assert "Exited with exit code 3." in (host.folder / "work" / "out").read_text()


def test_an_end_is_told_until_it_is_acknowledged(master: FakeMaster, host: AgentHost) -> None:
    master.acknowledges = False
    order = run(master, host, "exit 4", output="out")
    master.wait_for(order.uid, "ended")
    for _ in range(2):
        host.kill()
        count = len(master.of(order.uid, "ended"))
        hello = hello_again(master, host)
        assert order.uid in [part.uid for part in hello.parts]
        wait_until(lambda: len(master.of(order.uid, "ended")) > count, 30, "the end again")  # noqa: B023
    master.acknowledges = True
    host.kill()
    hello_again(master, host)
    wait_until(lambda: not _entries(master, host), 30, "the end forgotten")
    assert (host.folder / "work" / "out").read_text().count("Sender: ") == 1


def _entries(master: FakeMaster, host: AgentHost) -> list[str]:
    count = len(master.hellos)
    master.drop()
    wait_until(lambda: len(master.hellos) > count, 30, "another hello")
    return [part.uid for part in master.hellos[-1].parts]


def test_a_start_that_comes_twice_starts_once(master: FakeMaster, host: AgentHost) -> None:
    made = host.text(master, "echo run >> runs; sleep 0.3")
    order = start_order(master, made)
    master.order(order, order, texts=(made,))
    master.wait_for(order.uid, "started")
    master.order(order, texts=(made,))
    master.wait_for(order.uid, "ended")
    master.order(order, texts=(made,))
    wait_until(lambda: master.of(order.uid, "refused"), 30, "refused")
    assert (host.folder / "work" / "runs").read_text() == "run\n"


def test_a_killed_starter_loses_its_jobs_honestly(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "sleep 100")
    pid = master.wait_for(order.uid, "started").started.pid
    former = host.starter_pid()
    os.kill(former, signal.SIGKILL)
    end = master.wait_for(order.uid, "ended").ended
    assert end.lost
    assert end.gone
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 20, "the job's end")
    after = run(master, host, "true")
    assert master.wait_for(after.uid, "ended").ended.status == 0
    wait_until(lambda: not os.path.exists(f"/proc/{former}"), 20, "the former starter to be reaped")


def test_an_agent_whose_starter_is_a_service_of_its_own_waits_for_it(tmp_path: Path) -> None:
    """One that it started itself would be in the agent's group, and keep the service from starting."""
    with fake_master() as master:
        host = AgentHost(tmp_path, master.address)
        host.start("--await-starter")
        try:
            wait_until(lambda: (host.run / "agent-h1.sock").exists(), 20, "the agent")
            wait_until(lambda: "the starter does not answer" in host.log.read_text(), 30, "a word about the starter")
            assert not host.starter_pid()
            folder, path = str(host.spool / "starter"), str(host.run / "starter-h1.sock")
            service = starterlink.spawn("h1", folder, path, str(host.run), "")
            wait_until(lambda: master.hellos, 20, "the agent at its master")
            assert host.starter_pid() == service.pid
            service.kill()
            service.wait()
            wait_until(lambda: "the connection to the starter is lost" in host.log.read_text(), 20, "the loss")
            service = starterlink.spawn("h1", folder, path, str(host.run), "")
            order = run(master, host, "exit 3")
            assert master.wait_for(order.uid, "ended").ended.status == 3 << 8
            assert host.starter_pid() == service.pid
        finally:
            host.stop()
            service.wait(20)


def test_a_kill_sequence_goes_on_after_a_restart_of_the_agent(master: FakeMaster, host: AgentHost) -> None:
    command, out = "trap '' INT TERM; echo ready; while :; do sleep 0.05; done", host.folder / "work" / "kill.out"
    order = run(master, host, command, terminate_interval=2, output="kill.out")
    master.wait_for(order.uid, "started")
    wait_until(lambda: out.exists() and "ready" in out.read_text(), 20, "the trap")
    asked = pb.Signal(number=1, kind="kill", reason="TERM_OWNER")
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, signal=asked))
    master.wait_for(order.uid, "granted")
    host.kill()
    hello_again(master, host)
    assert master.wait_for(order.uid, "ended").ended.status == 9


def test_another_store_ends_all_that_is_here(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "sleep 100")
    pid = master.wait_for(order.uid, "started").started.pid
    master.incarnation = "store-2"
    master.drop()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30, "the job's end")
    after = run(master, host, "true")
    assert master.wait_for(after.uid, "ended").ended.status == 0
    assert not master.of(order.uid, "ended")
    wait_until(lambda: not _entries(master, host), 30, "all forgotten")


def test_a_standby_and_a_lower_epoch_are_not_obeyed(tmp_path: Path) -> None:
    standby, master = FakeMaster(), FakeMaster(epoch=5)
    standby.standby = True
    host = AgentHost(tmp_path, standby.address, master.address)
    try:
        host.start()
        wait_until(lambda: master.hellos, 30, "hello")
        order = run(master, host, "sleep 100")
        master.wait_for(order.uid, "started")
        standby.standby, standby.epoch = False, 4
        master.stop()
        wait_until(lambda: standby.hellos, 30, "hello to the old master")
        assert standby.hellos[0].epoch == 5
        standby.epoch = 6
        wait_until(lambda: standby.heartbeats, 30, "heartbeats to the new master")
        assert [part.uid for part in standby.hellos[-1].parts] == [order.uid]
    finally:
        host.stop()
        standby.stop()
        master.stop()


def test_reports_that_were_not_acknowledged_come_again_on_the_next_stream(master: FakeMaster, host: AgentHost) -> None:
    master.acknowledges = False
    order = run(master, host, "sleep 100")
    asked = pb.Signal(number=1, kind="signal", signal=9)
    master.wait_for(order.uid, "started")
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, signal=asked))
    master.wait_for(order.uid, "ended")
    master.reports.clear()
    master.acknowledges = True
    master.drop()
    master.wait_for(order.uid, "granted")
    assert master.wait_for(order.uid, "ended").ended.status == 9
    assert [report.serial for report in master.reports] == list(range(1, len(master.reports) + 1))


def test_a_leased_job_dies_when_no_lease_comes(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "sleep 100", {"lease": 2.0})
    pid = master.wait_for(order.uid, "started").started.pid
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 3, 30, "more than the lease")
    assert os.path.exists(f"/proc/{pid}")
    master.echoes = False
    end = master.wait_for(order.uid, "ended").ended
    assert end.status == 9
    assert not os.path.exists(f"/proc/{pid}")


def test_each_job_has_its_own_lease_and_an_extension_is_for_all(master: FakeMaster, host: AgentHost) -> None:
    master.extended = 4.0
    short, long = run(master, host, "sleep 100", {"lease": 1.0}), run(master, host, "sleep 100", {"lease": 60.0})
    pids = [master.wait_for(order.uid, "started").started.pid for order in (short, long)]
    beats = len(master.heartbeats)
    wait_until(lambda: len(master.heartbeats) > beats + 1, 30, "an answer that extends")
    master.echoes = False
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 2, 30, "more than the lease")
    assert all(os.path.exists(f"/proc/{pid}") for pid in pids)
    assert master.wait_for(short.uid, "ended").ended.first_reason == "lease"
    assert os.path.exists(f"/proc/{pids[1]}")


def test_a_newer_attempt_ends_the_older_one(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "sleep 100")
    pid = master.wait_for(order.uid, "started").started.pid
    made = host.text(master, "true")
    newer = start_order(master, made, key=order.key, attempt=2)
    master.order(newer, texts=(made,))
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30, "the older attempt's end")
    master.wait_for(newer.uid, "ended")

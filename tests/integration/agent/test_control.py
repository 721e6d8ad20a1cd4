"""Real agent, real starter: signals, the kill sequence, stopping, limits."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, fake_master, run, running
from tests.support.daemons.fake_master import FakeMaster
from tests.support.processes import state_of
from tests.support.wait import wait_until


@pytest.fixture(scope="module")
def master() -> Iterator[FakeMaster]:
    with fake_master() as one:
        yield one


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, master: FakeMaster) -> Iterator[AgentHost]:
    with running(AgentHost(tmp_path_factory.mktemp("agent"), master.address), lambda: master.hellos) as one:
        yield one


TRAPS = "trap 'echo INT' INT; trap 'echo TERM' TERM; echo ready; while :; do sleep 0.05; done"


def request(master: FakeMaster, order: pb.Order, number: int, kind: str, sig: int = 0, reason: str = "TERM_OWNER") -> None:
    asked = pb.Signal(number=number, kind=kind, signal=sig, reason=reason)
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, signal=asked))


def says(host: AgentHost, name: str, words: str) -> None:
    path = host.folder / "work" / name
    wait_until(lambda: path.exists() and words in path.read_text(), 30, lambda: f"{words} in {name}")


def test_kill_sends_int_then_term_then_kill(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, TRAPS, output="seq.out")
    says(host, "seq.out", "ready")
    master.wait_for(order.uid, "started")
    request(master, order, 1, "kill")
    granted = master.wait_for(order.uid, "granted").granted
    assert (granted.number, granted.ok) == (1, True)
    end = master.wait_for(order.uid, "ended").ended
    assert end.status == 9
    text = (host.folder / "work" / "seq.out").read_text()
    assert text.index("ready") < text.index("INT") < text.index("TERM")
    assert "TERM_OWNER: job killed by owner." in text


def test_a_job_that_heeds_int_ends_by_it(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "echo ready; exec sleep 100", output="int.out")
    says(host, "int.out", "ready")
    master.wait_for(order.uid, "started")
    request(master, order, 1, "kill")
    assert master.wait_for(order.uid, "ended").ended.status == 2
    request(master, order, 2, "kill")
    wait_until(lambda: len(master.of(order.uid, "granted")) > 0, 30, "granted")


def test_each_wish_is_done_once(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "trap 'echo one' USR1; echo ready; while :; do sleep 0.05; done", output="once.out")
    says(host, "once.out", "ready")
    master.wait_for(order.uid, "started")
    for asked, said in ((1, 1), (1, 1), (1, 1), (2, 2)):
        request(master, order, asked, "signal", 10)
        file = host.folder / "work" / "once.out"
        wait_until(lambda: file.read_text().partition("---")[0].count("one\n") == said, 30, f"{said} times one")  # noqa: B023
    wait_until(lambda: [r.granted.number for r in master.of(order.uid, "granted")] == [1, 1, 1, 2], 30, "all granted")
    request(master, order, 3, "signal", 9)
    assert master.wait_for(order.uid, "ended").ended.status == 9
    assert (host.folder / "work" / "once.out").read_text().partition("---")[0].count("one\n") == 2


def test_requeue_ends_the_job_at_once(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, TRAPS, output="requeue.out")
    says(host, "requeue.out", "ready")
    master.wait_for(order.uid, "started")
    request(master, order, 1, "requeue", reason="TERM_REQUEUE_OWNER")
    end = master.wait_for(order.uid, "ended").ended
    assert end.status == 9
    assert "will be re-queued with the same jobid." in (host.folder / "work" / "requeue.out").read_text()


def test_stop_and_resume(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "sleep 100")
    pid = master.wait_for(order.uid, "started").started.pid
    for stopped, letters in ((True, "T"), (False, "S")):
        master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, stop=pb.Stop(stopped=stopped)))
        wait_until(lambda: state_of(pid) in letters, 30, f"state {letters}")  # noqa: B023
        said = lambda: [r.stopped.stopped for r in master.of(order.uid, "stopped")]  # noqa: E731
        wait_until(lambda: said()[-1:] == [stopped], 30, "stopped")  # noqa: B023
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, kill=pb.Kill()))
    end = master.wait_for(order.uid, "ended").ended
    assert end.status == 9
    wait_until(lambda: end.gone or master.of(order.uid, "gone"), 30, "gone")
    assert not os.path.exists(f"/proc/{pid}")


def test_the_run_limit_is_usr2_and_then_the_kill_sequence(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "sleep 100", limits=pb.Limits(run=1, core=-1), run_warning=60, output="limit.out")
    end = master.wait_for(order.uid, "ended").ended
    assert (os.waitstatus_to_exitcode(end.status), end.limit) == (140, "TERM_RUNLIMIT")
    text = (host.folder / "work" / "limit.out").read_text()
    assert "TERM_RUNLIMIT: job killed after reaching LSF run time limit." in text
    assert "Exited with exit code 140." in text
    command = "trap '' USR2 INT; echo ready; while :; do sleep 0.05; done"
    order = run(master, host, command, limits=pb.Limits(run=1, core=-1), run_warning=1)
    end = master.wait_for(order.uid, "ended").ended
    assert (end.status, end.limit) == (15, "TERM_RUNLIMIT")


def test_a_job_over_its_memory_limit_is_ended(master: FakeMaster, host: AgentHost) -> None:
    command = "/usr/bin/perl -e '$x = \"a\" x 150_000_000; sleep 100'"
    order = run(master, host, command, limits=pb.Limits(mem=50_000, core=-1), enforce_memory=True, output="mem.out")
    end = master.wait_for(order.uid, "ended").ended
    assert end.limit == "TERM_MEMLIMIT"
    assert end.max_mem > 50_000
    order = run(master, host, command.replace("100", "0.1"), limits=pb.Limits(mem=50_000, core=-1))
    assert master.wait_for(order.uid, "ended").ended.limit == ""


def test_processes_that_reach_the_memory_limit_together_are_ended_for_it(master: FakeMaster, host: AgentHost) -> None:
    """The kernel kills one of them before the agent has seen how much they are: its control group tells."""
    command = "bash -c '"
    command += 'perl -e "\\$x = qq(a) x 30_000_000; sleep 100" & ' * 2
    command += "wait -n; exit $?'"
    order = run(master, host, command, limits=pb.Limits(mem=50_000, core=-1), enforce_memory=True, output="together.out")
    end = master.wait_for(order.uid, "ended").ended
    assert end.limit == "TERM_MEMLIMIT"
    assert "TERM_MEMLIMIT" in (host.folder / "work" / "together.out").read_text()


def test_the_cpu_limit(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "while :; do :; done", limits=pb.Limits(cpu=1, core=-1))
    end = master.wait_for(order.uid, "ended").ended
    assert (end.status & 0x7F, end.limit) == (24, "TERM_CPULIMIT")


def test_the_process_limit(master: FakeMaster, host: AgentHost) -> None:
    command = "for i in 1 2 3 4 5 6; do sleep 100 & done; wait"
    order = run(master, host, command, limits=pb.Limits(processes=3, core=-1))
    end = master.wait_for(order.uid, "ended").ended
    assert end.limit == "TERM_PROCESSLIMIT"
    assert end.max_processes >= 6


def test_file_and_core_limits_reach_the_job(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "ulimit -f; ulimit -c", limits=pb.Limits(file=2048, core=0), output="ulimit.out")
    master.wait_for(order.uid, "ended")
    assert (host.folder / "work" / "ulimit.out").read_text().startswith("4096\n0\n")


def test_usage_is_sampled_and_sent(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "sleep 100 & sleep 100")
    pid = master.wait_for(order.uid, "started").started.pid
    use = wait_until(lambda: [u for b in master.heartbeats for u in b.usage if u.key == order.key], 30, "usage")[-1]
    assert pid in use.pids
    assert use.rss > 0
    request(master, order, 1, "signal", 9)
    end = master.wait_for(order.uid, "ended").ended
    assert end.max_processes == 3


def test_peek_reads_what_there_is(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "echo so far; sleep 100", output="peek.out")
    says(host, "peek.out", "so far")
    for number, uid, path in ((1, order.uid, ""), (2, order.uid, "peek.out")):
        master.send(peek=pb.Peek(id=number, key=order.key, uid=uid, path=path, offset=3, limit=100))
        data = wait_until(lambda: [peek for peek in master.peeks if peek.id == number], 30, "peek")[0]  # noqa: B023
        assert (data.data, data.size) == (b"far\n", 7)
    request(master, order, 1, "signal", 9)
    master.wait_for(order.uid, "ended")


def test_a_daemonised_child_dies_with_the_job(master: FakeMaster, host: AgentHost) -> None:
    order = run(master, host, "setsid sh -c 'env -i /bin/sleep 54321 &'; sleep 100")
    master.wait_for(order.uid, "started")
    request(master, order, 1, "kill")
    end = master.wait_for(order.uid, "ended").ended
    wait_until(lambda: end.gone or master.of(order.uid, "gone"), 30, "gone")
    commands = [_command(pid) for pid in os.listdir("/proc") if pid.isdigit()]
    assert b"/bin/sleep\x0054321\x00" not in commands


def _command(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""

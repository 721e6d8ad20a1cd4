"""Real agent and starter: commands of the queue and of hosts run as root around a user's job, whatever becomes of the job."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, run
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")


@pytest.fixture
def host(tmp_path: Path, master: FakeMaster) -> Iterator[AgentHost]:
    tmp_path.chmod(0o755)
    (tmp_path / "lsf.sudoers").write_text("LSB_PRE_POST_EXEC_USER=root\n")
    (tmp_path / "lsf.sudoers").chmod(0o600)
    (tmp_path / "said").touch()
    (tmp_path / "said").chmod(0o666)
    one = AgentHost(tmp_path, master.address)
    (tmp_path / "work").chmod(0o777)
    start(one)
    try:
        wait_until(lambda: master.hellos, 30, "the agent")
        yield one
    finally:
        one.stop()


def start(host: AgentHost) -> None:
    host.start("--sudoers", str(host.folder / "lsf.sudoers"))


def said(host: AgentHost) -> list[str]:
    return (host.folder / "said").read_text().splitlines()


def job(master: FakeMaster, host: AgentHost, command: str, **more: Any) -> pb.Order:
    tell = f'id -un)" >> {host.folder}/said'
    around = {
        "host_pre_exec": [f'echo "hostpre $({tell}'],
        "queue_pre_exec": f'echo "queuepre $({tell}',
        "pre_exec": f'echo "pre $({tell}',
        "post_exec": f'echo "post $({tell}',
        "queue_post_exec": f'echo "queuepost $LSB_JOBEXIT_STAT $LSFUSER $({tell}',
        "host_post_exec": [f'echo "hostpost $({tell}'],
    }
    return run(master, host, f"echo job >> {host.folder}/said; {command}", user="nobody", **(around | more))


BEFORE = ["hostpre root", "queuepre root"]


def after(status: int) -> list[str]:
    return [f"queuepost {status} nobody root", "hostpost root"]


def test_they_run_as_root_around_the_jobs_own(master: FakeMaster, host: AgentHost) -> None:
    order = job(master, host, "exit 7")
    assert master.wait_for(order.uid, "ended").ended.status == 7 << 8
    master.wait_for(order.uid, "gone")
    assert said(host) == [*BEFORE, "pre nobody", "job", "post nobody", *after(1792)]


def test_a_job_whose_host_is_not_made_ready_does_not_start(master: FakeMaster, host: AgentHost) -> None:
    order = job(master, host, "true", queue_pre_exec="echo no scratch here >&2; exit 5")
    refused = master.wait_for(order.uid, "refused").refused
    assert (refused.code, refused.why) == ("pre_exec", "the pre-execution command exited with code 5: no scratch here")
    assert said(host) == ["hostpre root", *after(0)], "what follows a job cleans up after what came before it"


def test_a_job_that_is_killed_meanwhile_does_not_start(master: FakeMaster, host: AgentHost) -> None:
    order = job(master, host, "true", queue_pre_exec=f"echo waits >> {host.folder}/said; sleep 600")
    wait_until(lambda: "waits" in said(host), 20, "the command of the queue")
    asked = pb.Signal(number=1, kind="kill", reason="TERM_OWNER")
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, signal=asked))
    assert master.wait_for(order.uid, "ended").ended.gone
    assert said(host) == ["hostpre root", "waits", *after(0)]


def test_they_follow_a_job_that_is_killed_or_lost(master: FakeMaster, host: AgentHost) -> None:
    order = job(master, host, "sleep 600", post_exec="")
    master.wait_for(order.uid, "started")
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, kill=pb.Kill()))
    master.wait_for(order.uid, "ended")
    wait_until(lambda: said(host)[-2:] == after(9), 20, lambda: str(said(host)))
    lost = job(master, host, "sleep 600", post_exec="")
    master.wait_for(lost.uid, "started")
    os.kill(host.starter_pid(), signal.SIGKILL)
    assert master.wait_for(lost.uid, "ended").ended.lost
    wait_until(lambda: said(host)[-2:] == after(0), 20, lambda: str(said(host)))


@pytest.mark.parametrize("field", ["queue_pre_exec", "queue_post_exec"])
def test_they_run_once_though_the_agent_is_restarted(master: FakeMaster, host: AgentHost, field: str) -> None:
    waits = (
        f"echo waits >> {host.folder}/said; until [ -e {host.folder}/go ]; do sleep 0.05; done; echo over >> {host.folder}/said"
    )
    order = job(master, host, "true", **{field: waits})
    wait_until(lambda: "waits" in said(host), 20, "the command of the queue")
    for _ in range(2):
        host.kill()
        count = len(master.hellos)
        start(host)
        wait_until(lambda: len(master.hellos) > count, 30, "another hello")  # noqa: B023
        assert order.uid in [part.uid for part in master.hellos[-1].parts]
    (host.folder / "go").touch()
    assert master.wait_for(order.uid, "ended").ended.status == 0
    last = ["waits", "over", "hostpost root"] if field == "queue_post_exec" else after(0)
    wait_until(lambda: said(host)[-len(last) :] == last, 20, lambda: str(said(host)))
    assert [said(host).count(one) for one in ("waits", "hostpre root", "hostpost root", "job")] == [1, 1, 1, 1]


def test_a_job_that_is_suspended_meanwhile_starts_suspended(master: FakeMaster, host: AgentHost) -> None:
    waits = f"echo waits >> {host.folder}/said; until [ -e {host.folder}/go ]; do sleep 0.05; done"
    order = job(master, host, "sleep 0.5; echo ran >> ran", queue_pre_exec=waits, pre_exec="")
    wait_until(lambda: "waits" in said(host), 20, "the command of the queue")
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, stop=pb.Stop(stopped=True)))
    master.wait_for(order.uid, "stopped")
    (host.folder / "go").touch()
    wait_until(lambda: len(master.of(order.uid, "stopped")) > 1, 20, "suspended again")
    assert not (host.folder / "work" / "ran").exists()
    assert not master.of(order.uid, "ended")
    master.order(pb.Order(key=order.key, attempt=1, uid=order.uid, stop=pb.Stop(stopped=False)))
    assert master.wait_for(order.uid, "ended").ended.status == 0


def test_a_queue_names_nobody_else(master: FakeMaster, host: AgentHost) -> None:
    order = job(master, host, "true", pre_post_exec_user="daemon", queue="night")
    refused = master.wait_for(order.uid, "refused").refused
    assert refused.code == "pre_exec"
    assert refused.why.startswith("host h1 runs no commands of queue night as daemon (PRE_POST_EXEC_USER): its lsf.sudoers")
    assert said(host) == []
    own = job(master, host, "true", pre_post_exec_user="nobody")
    master.wait_for(own.uid, "gone")
    assert said(host)[:2] == ["hostpre nobody", "queuepre nobody"]


def test_an_agent_does_not_start_with_a_file_that_others_may_change(tmp_path: Path, master: FakeMaster) -> None:
    path = tmp_path / "lsf.sudoers"
    path.write_text("LSB_PRE_POST_EXEC_USER=root\n")
    path.chmod(0o666)
    host = AgentHost(tmp_path, master.address)
    host.start("--sudoers", str(path))
    assert host.process is not None
    try:
        assert host.process.wait(30) == 1
    finally:
        host.stop()
    assert f"{path}: it must belong to root" in host.log.read_text()

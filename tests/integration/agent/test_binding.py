"""affinity[] on a real host: processes run where the scheduler put them, memory too, and the next job is free."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.monitor.topology import cpu_list, read_topology
from agent.starter.system import cgroup
from lavad.core.lang.topology import parse_topology
from proto import agent_pb2 as pb
from tests.support.daemons.agent_host import AgentHost, fake_master, running, start_order
from tests.support.daemons.fake_master import FakeMaster
from tests.support.wait import wait_until

CPUS = sorted(os.sched_getaffinity(0))
MASK = "grep Cpus_allowed_list /proc/self/status"


@pytest.fixture(scope="module")
def master() -> Iterator[FakeMaster]:
    with fake_master() as one:
        yield one


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory, master: FakeMaster) -> Iterator[AgentHost]:
    with running(AgentHost(tmp_path_factory.mktemp("bound"), master.address), lambda: master.hellos) as one:
        yield one


def run(
    master: FakeMaster, host: AgentHost, command: str, binds: list[pb.Bind], launch: str = "", enforce_cpu: bool = False
) -> str:
    text = host.text(master, command, output="bound.out", output_overwrite=True, launch=launch, enforce_cpu=enforce_cpu)
    slots = [pb.HostSlots(host="h1", slots=max(1, len(binds)), binds=binds)]
    order = start_order(master, text, hosts=slots)
    master.order(order, texts=(text,))
    assert master.wait_for(order.uid, "ended").ended.status == 0
    wait_until(lambda: (host.folder / "work" / "bound.out").exists(), 30, "output")
    return (host.folder / "work" / "bound.out").read_text()


def masks(text: str) -> list[list[int]]:
    return [cpu_list(line.split()[1]) for line in text.splitlines() if line.startswith("Cpus_allowed_list")]


def test_the_agent_tells_its_processors(master: FakeMaster, host: AgentHost) -> None:
    topology = parse_topology(master.hellos[-1].facts.topology)
    assert topology is not None
    assert sorted(topology.cpus) == CPUS
    assert master.hellos[-1].facts.topology == read_topology()


def test_a_job_runs_on_its_cpus_and_knows_them(master: FakeMaster, host: AgentHost) -> None:
    bind = pb.Bind(cpus=CPUS[-1:], nodes=[0], only=True)
    show = "env | grep LSB_BIND; cat $LSB_AFFINITY_HOSTFILE; grep -m1 -o bind:0 /proc/self/numa_maps"
    text = run(master, host, f"{MASK}; {show}", [bind])
    assert masks(text) == [CPUS[-1:]]
    assert f"LSB_BIND_CPU_LIST={CPUS[-1]}\n" in text
    assert "LSB_BIND_MEM_POLICY=localonly" in text
    assert f"h1 {CPUS[-1]} 0 1\n" in text
    if Path("/proc/self/numa_maps").exists():
        assert "bind:0" in text or "cannot bind memory" in text
    assert masks(run(master, host, MASK, [])) == [CPUS]


def test_each_rank_has_its_own(master: FakeMaster, host: AgentHost) -> None:
    binds = [pb.Bind(cpus=[cpu]) for cpu in (CPUS[-1], CPUS[0])]
    text = run(master, host, f"{MASK}; echo rank $PMI_RANK $LSB_BIND_CPU_LIST", binds, launch="mpi")
    assert sorted(masks(text)) == sorted([[CPUS[-1]], [CPUS[0]]])
    assert f"rank 0 {CPUS[-1]}\n" in text
    assert f"rank 1 {CPUS[0]}\n" in text


def test_cpus_that_are_not_there_are_said_and_the_job_runs(master: FakeMaster, host: AgentHost) -> None:
    text = run(master, host, MASK, [pb.Bind(cpus=[4000])])
    assert "lava: cannot bind to CPUs 4000: Invalid argument\n" in text
    assert masks(text) == [CPUS]


@pytest.mark.skipif(len(CPUS) < 2, reason="one processor: there is no other to run on")
@pytest.mark.parametrize("launch", ["", "mpi"])
@pytest.mark.parametrize("enforced", [False, True])
def test_a_process_leaves_its_cpus_unless_they_are_enforced(
    master: FakeMaster, host: AgentHost, enforced: bool, launch: str
) -> None:
    """LSB_RESOURCE_ENFORCE=cpu: a group of the kernel's keeps it there, which sched_setaffinity alone does not.

    ``launch``: one process is started by native code, ranks are by Python.
    """
    if enforced and "cpuset" not in cgroup.find().folders:
        pytest.skip("no cgroup keeps processes on CPUs here")
    leaves = f"import os; os.sched_setaffinity(0, {set(CPUS)}); print(open('/proc/self/status').read())"
    text = run(master, host, f'{MASK}; python3 -c "{leaves}"', [pb.Bind(cpus=CPUS[-1:])], launch, enforced)
    assert masks(text) == [CPUS[-1:], CPUS[-1:] if enforced else CPUS]
    after = run(master, host, MASK, [pb.Bind(cpus=CPUS[:1])], launch, enforced)
    assert masks(after) == [CPUS[:1]], "the shepherd that ran it has left that group"
    assert masks(run(master, host, MASK, [], launch)) == [CPUS]

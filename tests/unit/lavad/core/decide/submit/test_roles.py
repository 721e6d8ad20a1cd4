"""Jobs with roles: what is wrong with one is said by name."""

from __future__ import annotations

import pytest

from lavad.core.decide.submit.submit import Given, submit
from lavad.core.job.roles import is_late
from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused, Submit
from lavad.core.site.conf import Params, UnitConf
from tests.support.worlds.bench import ALICE, LOCAL, Bench
from tests.support.worlds.roles import ask, role

W = role()
BAD: list[tuple[Submit, str]] = [
    (ask(W, options={"n": "4"}), "-n cannot be used with roles"),
    (ask(W, options={"gpu": "num=1"}), "No role asks for GPUs: with roles each role says how many GPUs a task gets"),
    (ask(W, options={"a": ["mpi"]}), "-a mpi cannot be used with roles"),
    (ask(role(software="pytorch")), "role worker: pytorch is no software of a role"),
    (ask(role(software="container()")), "role worker: container: -a container needs something"),
    (ask(W, role("Worker")), "role worker is given twice"),
    (ask(role("a b")), "role 'a b'"),
    (ask(role("all")), "role all"),
    (ask(role(command=" ")), "role worker: No command"),
    (ask(role(count=0)), "role worker: count 0"),
    (ask(role(count=3, least=4)), "role worker: least 4"),
    (ask(role(slots=0)), "role worker: slots 0"),
    (ask(role(gpus=-1)), "role worker: gpus -1"),
    (ask(role(restart="Sometimes")), "role worker: restart Sometimes: it is one of Never, OnFailure, Always, ExitCode"),
    (ask(role(kind="boss")), "role worker: kind boss"),
    (ask(role(resreq="select[")), "role worker: resreq: "),
    (ask(role(resreq="select[nosuch>1]")), "role worker: resreq: unknown resource <nosuch>: Bad resource requirement syntax"),
    (ask(role(resreq="span[hosts=1]")), "role worker: resreq: Bad resource requirement: span[] cannot be used with roles"),
    (ask(W, options={"R": ["2*{mem>1}+1*{mem>2}"]}), "Bad resource requirement: n*{...} cannot be used with roles"),
    (ask(role(limits={"M": "much"})), "role worker: much: Bad MEMLIMIT"),
    (ask(role(limits={"W": "5"})), "role worker: -W is no limit of a role"),
    (ask(role(env={"A=B": "1"})), "role worker: 'A=B'"),
    (ask(role(env={"A B": "1"})), "role worker: 'A B' is no name of a variable"),
    (ask(role(actions=[("TaskFailed", "Explode", -1)])), "role worker: action Explode"),
    (ask(role(actions=[("TaskSlept", "AbortJob", -1)])), "role worker: event TaskSlept"),
    (ask(W, success="boss"), "success boss: it is a role"),
    (ask(W, success="worker[1]"), "success worker[1]: role worker has 1 tasks"),
    (ask(W, success="worker["), "success worker["),
    (ask(role(kind="hold", command="")), "no role has a command"),
    (ask(W, success="worker,boss"), "success worker,boss: it is a role, role[index], several with commas, all, any"),
    (ask(W, success="any(worker"), "success any(worker: it is a role"),
    (ask(W, success="any(2)"), "success any(2): 2 is not between 1 and 1, the tasks that could succeed"),
    (ask(W, success="any(0,worker)"), "success any(0,worker): 0 is not between 1 and 1"),
    (ask(W, success="any(1,boss)"), "success any(1,boss): it is a role"),
    (ask(role(count=4), role("b"), success="any(5,worker)"), "success any(5,worker): 5 is not between 1 and 4"),
    (ask(W, success="worker | boss"), "success worker | boss: it is a role"),
    (ask(W, success="worker &"), "success worker &: it is a role"),
    (ask(role(count=4), success="worker[2-4]"), "success worker[2-4]: role worker has 4 tasks"),
    (ask(W, success="any()"), "success any(): it is a role"),
    (ask(role(after=["boss"])), "role worker: after boss: there is no such role"),
    (ask(role(after=["worker"])), "after: roles worker wait for each other"),
    (ask(role("a", after=["b"]), role("b", after=["a"]), role("c")), "after: roles a, b wait for each other"),
    (ask(role("a", after=["b"]), role("b", kind="launcher")), "after: roles a, b wait for each other"),
    (ask(W, role("h", kind="hold", command="", after=["worker"])), "role h: after: its tasks run nothing that could start later"),
    (ask(role(backoff=-2)), "role worker: backoff -2"),
    (ask(W, clean="never"), "clean never"),
    (ask(W, framework="mxnet9"), "framework mxnet9: it is one of mpi, mpich, intelmpi, pytorch, tensorflow, jax"),
    (ask(W, framework="volcano(keras)"), "framework volcano: plugin keras: it is one of pytorch, tensorflow, mpi"),
    (ask(W, framework="volcano(mpi"), "framework volcano(mpi: it is one of"),
    (ask(W, framework="pytorch(mpi)"), "framework pytorch(mpi): it is one of"),
    (ask(W, framework="volcano(mpi,ps=worker)"), "framework volcano: mpi: role ps: it is one of master, worker"),
    (ask(W, framework="volcano(mpi,master=boss)"), "framework volcano: mpi: master=boss: there is no such role"),
    (
        ask(W, framework="volcano(mpi,master=worker,master=worker)"),
        "framework volcano: mpi: master=worker: there is no such role",
    ),
    (ask(W, launcher_start="later"), "launcher_start later"),
    (ask(W, backoff=-1), "backoff -1"),
    (ask(*(role(f"r{n}") for n in range(65))), "65 roles are too many"),
    (ask(role(count=9999), role("b", count=9999)), "the roles have more than 10000 tasks"),
]


@pytest.mark.parametrize(("asked", "why"), BAD)
def test_what_is_wrong_is_refused_by_name(bench: Bench, asked: Submit, why: str) -> None:
    """Bad input: one line that names the role and the reason, and no job."""
    with pytest.raises(Refused) as refused:
        submit(bench.cluster, Given(asked, ALICE, bench.now, LOCAL))
    assert refused.value.text.startswith(why)
    assert "\n" not in refused.value.text


def submitted(bench: Bench, asked: Submit) -> Spec:
    answer = bench.take(submit(bench.cluster, Given(asked, ALICE, bench.now, LOCAL)))
    return bench.cluster.spec_of(answer["job"])


def test_a_plugin_of_volcano_may_name_its_roles(bench: Bench) -> None:
    spec = submitted(bench, ask(role("head"), role("node"), framework="volcano(pytorch,master=head,worker=node)"))
    assert spec.policy.framework == "volcano(pytorch,master=head,worker=node)"


@pytest.mark.parametrize("kind", ["launcher", "launcher_worker"])
def test_a_launcher_decides_and_waits_for_the_others(bench: Bench, kind: str) -> None:
    spec = submitted(bench, ask(role("boss", kind=kind), W))
    assert spec.policy.success == "boss"
    assert [is_late(one, spec.policy) for one in spec.roles] == [True, False]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (
            ask(role(resreq="cu[maxcus=1]")),
            "role worker: resreq: Bad resource requirement: cu[] is about all tasks of a job: give it with -R",
        ),
        (ask(W, options={"R": ["cu[balance]"]}), "Bad resource requirement: cu[balance] cannot be used with roles"),
    ],
)
def test_compute_units_are_those_of_the_whole_job(bench: Bench, asked: Submit, why: str) -> None:
    units = Params(compute_unit_types=("rack",), units=(UnitConf("rack1", "rack"),))
    bench.configure(host_groups=(("rack1", ("h1",)),), params=units)
    with pytest.raises(Refused) as refused:
        submit(bench.cluster, Given(asked, ALICE, bench.now, LOCAL))
    assert refused.value.text.startswith(why)
    for kind in ("rack", "1"):
        assert submitted(bench, ask(W, options={"R": [f"cu[type={kind}:maxcus=1:pref=bestfit]"]})).resreq
    with pytest.raises(Refused, match="no compute units of type <2> are configured"):
        submitted(bench, ask(W, options={"R": ["cu[type=2]"]}))

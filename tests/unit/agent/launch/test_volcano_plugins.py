"""What tasks of a Volcano job find of its framework's plugin: golden environments by task."""

from __future__ import annotations

import json

import pytest

from agent.launch import roles
from proto import agent_pb2 as pb

# head 0 and node 0 on h1, node 1 and other 0 on h2
HOSTS = [
    pb.HostSlots(host="h1", slots=2, address="10.0.0.1", roles=[pb.RoleSlots(role=0, count=1), pb.RoleSlots(role=1, count=1)]),
    pb.HostSlots(
        host="h2", slots=2, address="10.0.0.2", roles=[pb.RoleSlots(role=1, first=1, count=1), pb.RoleSlots(role=2, count=1)]
    ),
]


def found(framework: str) -> dict[str, dict[str, str]]:
    """Task to its own variables."""
    text = pb.JobText(
        roles=[pb.Role(name=name, command="x", slots=1) for name in ("head", "node", "other")],
        framework=framework,
        limits=pb.Limits(core=-1),
    )
    envs: dict[str, dict[str, str]] = {}
    for place in range(len(HOSTS)):
        order = pb.Order(key=7, attempt=1, uid="abc", start=pb.Start(hosts=HOSTS, place=place, restart=-1))
        part = roles.of_host(order, text, "/bin", "10.0.0.1", lambda _: ("/hosts", "/ranks", "/slots", "/colons"))
        assert part.env["LAVA_LAUNCH"] == "volcano"
        envs |= {task.label: dict(task.env) for task in part.tasks}
    return envs


def test_pytorch_ranks_the_master_and_the_workers() -> None:
    """The master first, then the workers; another task knows the master, and has no rank."""
    envs = found("volcano(pytorch,master=head,worker=node)")
    names = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
    master = ("10.0.0.1", "@LAVA_PORT_0_0@", "3")
    assert {task: tuple(env.get(name) for name in names) for task, env in envs.items()} == {
        "head[0]": (*master, "0"),
        "node[0]": (*master, "1"),
        "node[1]": (*master, "2"),
        "other[0]": (*master, None),
    }
    assert envs["node[1]"]["VC_TASK_INDEX"] == "1"


def test_without_a_master_there_is_no_address() -> None:
    assert "MASTER_ADDR" not in found("volcano(pytorch)")["node[0]"]


@pytest.mark.parametrize(
    ("task", "kind", "index"), [("head[0]", "ps", 0), ("node[1]", "worker", 1), ("other[0]", "evaluator", 0)]
)
def test_tensorflow_has_its_own_words_for_roles(task: str, kind: str, index: int) -> None:
    """The evaluator too is in the cluster, as Volcano has it."""
    envs = found("volcano(tensorflow,ps=head,worker=node,evaluator=other)")
    assert json.loads(envs[task]["TF_CONFIG"]) == {
        "cluster": {
            "ps": ["10.0.0.1:@LAVA_PORT_0_0@"],
            "worker": ["10.0.0.1:@LAVA_PORT_0_1@", "10.0.0.2:@LAVA_PORT_1_0@"],
            "evaluator": ["10.0.0.2:@LAVA_PORT_1_1@"],
        },
        "task": {"type": kind, "index": index},
    }


def test_mpi_tells_the_master_alone_where_the_workers_are() -> None:
    envs = found("volcano(mpi,master=head,worker=node)")
    assert {task: env.get("MPI_HOST") for task, env in envs.items()} == {
        "head[0]": "h1,h2",
        "node[0]": None,
        "node[1]": None,
        "other[0]": None,
    }

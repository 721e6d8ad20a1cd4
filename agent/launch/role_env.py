"""Who the tasks of a job with roles are, and the environment by which each finds the others, in its framework's words.

Rule: pure. Variables of frameworks have the names and forms that Kubeflow's training operators, Volcano, torchrun, JAX, ps-lite
and paddle.distributed.launch set or read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

import msgspec

from agent.launch import frameworks
from agent.launch.frameworks import address_of, mark
from proto import agent_pb2 as pb
from proto.roles import PLUGINS

KIND = "roles"
MOST_PEERS = 1000
"""Tasks beyond these are in no LAVA_PEER_ variable: an environment has an end."""
Hosts = Sequence[pb.HostSlots]
_QUOTED_PORT = re.compile('"(@LAVA_PORT_[0-9]+_[0-9]+@)"')
"""A port's mark in JSON where a number has to be."""


class Peer(msgspec.Struct, frozen=True):
    """One task of the job, wherever it is; ``port`` is its mark."""

    role: int
    index: int
    place: int
    rank: int
    address: str
    port: str

    @property
    def at(self) -> str:
        """``address:port``."""
        return f"{_literal(self.address)}:{self.port}"


def peers_of(hosts: Hosts) -> list[Peer]:
    """All tasks by rank: role by role, and in a role by index. Ports are counted along each host's own list."""
    found: list[tuple[int, int, int, int]] = []
    for place, host in enumerate(hosts):
        count = 0
        for part in host.roles:
            for step in range(part.count):
                found.append((part.role, part.first + step, place, count))
                count += 1
    found.sort()
    return [
        Peer(role, index, place, rank, address_of(hosts, place), mark(place, count))
        for rank, (role, index, place, count) in enumerate(found)
    ]


def shared(peers: list[Peer], text: pb.JobText, start: pb.Start) -> dict[str, str]:
    """What all tasks have: who is where, by role and index."""
    env = {
        "LAVA_SIZE": str(len(peers)),
        "LAVA_PEERS": frameworks.peers(start.hosts),
        "LAVA_LAUNCH": frameworks.with_words(text.framework).kind or KIND,
    }
    for number, role in enumerate(text.roles):
        env[f"LAVA_COUNT_{variable(role.name)}"] = str(sum(peer.role == number for peer in peers))
    for peer in peers[:MOST_PEERS]:
        env[f"LAVA_PEER_{variable(text.roles[peer.role].name)}_{peer.index}"] = peer.at
    return env


def own(peer: Peer, peers: list[Peer], text: pb.JobText, order: pb.Order) -> dict[str, str]:
    """What one task has: its role, index and rank, and its framework's words for these."""
    env = {
        "LAVA_ROLE": text.roles[peer.role].name,
        "LAVA_INDEX": str(peer.index),
        "LAVA_RANK": str(peer.rank),
        "LAVA_PORT": peer.port,
        "LSF_PM_TASKID": str(peer.rank + 1),
    }
    framework = _FRAMEWORKS.get(frameworks.with_words(text.framework).kind)
    return env | framework(peer, peers, text, order) if framework else env


def variable(name: str) -> str:
    """A role's name in the name of a variable."""
    return name.upper().replace("-", "_")


def _job(order: pb.Order) -> str:
    """The job's number, with that of the element behind it."""
    return f"{order.key & 0xFFFFFFFF}" + (f".{order.key >> 32}" if order.key >> 32 else "")


def _pytorch(peer: Peer, peers: list[Peer], text: pb.JobText, order: pb.Order) -> dict[str, str]:
    """Each task is a node of its own. With ``nproc`` it starts its processes itself (torchrun reads PET_), else it is one."""
    master, size, rank = peers[0], len(peers), peer.rank
    env = {
        "MASTER_ADDR": master.address,
        "MASTER_PORT": master.port,
        "WORLD_SIZE": str(size),
        "RANK": str(rank),
        "GROUP_RANK": str(rank),
        "NODE_RANK": str(rank),
        "GROUP_WORLD_SIZE": str(size),
        "PET_NNODES": str(size),
        "PET_NPROC_PER_NODE": str(text.nproc or 1),
        "PET_NODE_RANK": str(rank),
    }
    if not text.nproc:
        env |= {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "PET_MASTER_ADDR": master.address, "PET_MASTER_PORT": master.port}
        return env
    if any(role.least < role.count for role in text.roles):
        return env | {
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": master.at,
            "PET_RDZV_ID": f"lava-{_job(order)}-{order.attempt}",
            "PET_RDZV_CONF": f"is_host={1 if rank == 0 else 0}",
        }
    return env | {"PET_MASTER_ADDR": master.address, "PET_MASTER_PORT": master.port}


def _tensorflow(peer: Peer, peers: list[Peer], text: pb.JobText, _: pb.Order) -> dict[str, str]:
    """TF_CONFIG; an evaluator is no member of the cluster that trains. A single task trains alone and has none."""
    if len(peers) == 1:
        return {}
    cluster: dict[str, list[str]] = {}
    for one in peers:
        name = text.roles[one.role].name.lower()
        if name != "evaluator":
            cluster.setdefault(name, []).append(one.at)
    task = {"type": text.roles[peer.role].name.lower(), "index": peer.index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


def _volcano(peer: Peer, peers: list[Peer], text: pb.JobText, order: pb.Order) -> dict[str, str]:
    """What the plugins svc and env give, and that of a framework, which is a word of ``volcano(pytorch,master=ROLE)``."""
    env = {"VC_TASK_INDEX": str(peer.index), "VK_TASK_INDEX": str(peer.index)}
    for number, role in enumerate(text.roles):
        hosts = [one.address for one in peers if one.role == number]
        env[f"VC_{variable(role.name)}_HOSTS"] = ",".join(hosts)
        env[f"VC_{variable(role.name)}_NUM"] = str(len(hosts))
    asked = frameworks.with_words(text.framework)
    for name in sorted(asked.words & _PLUGINS.keys()):
        env |= _PLUGINS[name](_Named(asked, text, peers), peer, order)
    return env


class _Named:
    """The tasks of a Volcano job by what its plugin calls them: ``worker=trainer`` says that role trainer has the workers."""

    def __init__(self, asked: frameworks.Launch, text: pb.JobText, peers: list[Peer]) -> None:
        self.asked = asked
        self.peers = peers
        self._names = [role.name for role in text.roles]

    def of(self, word: str) -> list[Peer]:
        """The tasks that the plugin calls so, by index."""
        name = self.asked.value(word) or word
        return [peer for peer in self.peers if self._names[peer.role] == name]

    def called(self, peer: Peer, words: Sequence[str]) -> str:
        """What the plugin calls the role of a task; its own name where that is none of the words."""
        name = self._names[peer.role]
        return next((word for word in words if (self.asked.value(word) or word) == name), name)


def _volcano_pytorch(named: _Named, peer: Peer, _: pb.Order) -> dict[str, str]:
    """The master has rank 0, the workers those behind it; other tasks have no rank."""
    masters = named.of("master")
    if not masters:
        return {}
    ranked = [*masters, *named.of("worker")]
    env = {"MASTER_ADDR": masters[0].address, "MASTER_PORT": masters[0].port, "WORLD_SIZE": str(len(ranked))}
    return env | ({"RANK": str(ranked.index(peer))} if peer in ranked else {})


def _volcano_tensorflow(named: _Named, peer: Peer, _: pb.Order) -> dict[str, str]:
    """TF_CONFIG, whose cluster has the evaluators too; a single task trains alone and has none."""
    if len(named.peers) == 1:
        return {}
    words = PLUGINS["tensorflow"]
    cluster = {word: [one.at for one in named.of(word)] for word in words if named.of(word)}
    task = {"type": named.called(peer, words), "index": peer.index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def _volcano_mpi(named: _Named, peer: Peer, order: pb.Order) -> dict[str, str]:
    """MPI_HOST, for the launcher alone: the hosts of the workers."""
    if peer not in named.of("master"):
        return {}
    return {"MPI_HOST": ",".join(order.start.hosts[one.place].host for one in named.of("worker"))}


_PLUGINS: dict[str, Callable[[_Named, Peer, pb.Order], dict[str, str]]] = {
    "pytorch": _volcano_pytorch,
    "tensorflow": _volcano_tensorflow,
    "mpi": _volcano_mpi,
}


def _jax(peer: Peer, peers: list[Peer], _: pb.JobText, __: pb.Order) -> dict[str, str]:
    """The operator's variables, and those that jax.distributed.initialize() reads by itself."""
    first, size, rank = peers[0], str(len(peers)), str(peer.rank)
    return {
        "COORDINATOR_ADDRESS": first.address,
        "COORDINATOR_PORT": first.port,
        "NUM_PROCESSES": size,
        "PROCESS_ID": rank,
        "JAX_COORDINATOR_ADDRESS": first.at,
        "JAX_NUM_PROCESSES": size,
        "JAX_PROCESS_ID": rank,
    }


def _xgboost(peer: Peer, peers: list[Peer], _: pb.JobText, __: pb.Order) -> dict[str, str]:
    """The first task runs the tracker, whose place the training operator and Kubeflow Trainer tell in words of their own.

    The operator's WORKER_PORT is one number for all hosts, which nobody here can promise.
    """
    first, size, rank = peers[0], str(len(peers)), str(peer.rank)
    return {
        "MASTER_ADDR": first.address,
        "MASTER_PORT": first.port,
        "WORLD_SIZE": size,
        "RANK": rank,
        "DMLC_TRACKER_URI": first.address,
        "DMLC_TRACKER_PORT": first.port,
        "DMLC_NUM_WORKER": size,
        "DMLC_TASK_ID": rank,
    }


def _paddle(peer: Peer, peers: list[Peer], text: pb.JobText, order: pb.Order) -> dict[str, str]:
    """What paddle.distributed.launch reads; where there are masters, they are parameter servers and the others train."""
    env = {
        "PADDLE_MASTER": peers[0].at,
        "PADDLE_NNODES": str(len(peers)),
        "PADDLE_RANK": str(peer.rank),
        "PADDLE_JOB_ID": f"lava-{_job(order)}-{order.attempt}",
        "POD_IP": peer.address,
    }
    names = [role.name.lower() for role in text.roles]
    if "master" in names:
        env["PADDLE_SERVER_NUM" if names[peer.role] == "master" else "PADDLE_TRAINER_NUM"] = "1"
    return env


def _mxnet(peer: Peer, peers: list[Peer], text: pb.JobText, _: pb.Order) -> dict[str, str]:
    """MX_CONFIG, and what ps-lite and BytePS read."""
    names = [role.name.lower() for role in text.roles]
    cluster: dict[str, list[dict[str, str]]] = {name: [] for name in names}
    for one in peers:
        cluster[names[one.role]].append({"url": one.address, "port": one.port})
    kind = names[peer.role]
    config = {"cluster": cluster, "labels": dict.fromkeys(names, ""), "task": {"type": kind, "index": peer.index}}
    root = next((one for one in peers if names[one.role] == "scheduler"), None)
    env = {
        "MX_CONFIG": _QUOTED_PORT.sub(r"\1", json.dumps(config)),
        "DMLC_PS_ROOT_URI": root.address if root else "",
        "DMLC_PS_ROOT_PORT": root.port if root else "0",
        "DMLC_NUM_SERVER": str(len(cluster.get("server", []))),
        "DMLC_NUM_WORKER": str(len(cluster.get("worker", []))),
        "DMLC_ROLE": kind,
        "DMLC_NODE_HOST": peer.address,
    }
    return env | ({"DMLC_WORKER_ID": str(peer.index)} if kind == "worker" else {})


_FRAMEWORKS: dict[str, Callable[[Peer, list[Peer], pb.JobText, pb.Order], dict[str, str]]] = {
    "pytorch": _pytorch,
    "tensorflow": _tensorflow,
    "jax": _jax,
    "xgboost": _xgboost,
    "paddle": _paddle,
    "mxnet": _mxnet,
    "volcano": _volcano,
}


def _literal(address: str) -> str:
    return f"[{address}]" if ":" in address else address

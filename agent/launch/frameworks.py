"""The environments that training frameworks start from, for jobs whose processes lava starts on every host.

Rule: pure. Two ways are kept apart: one process a rank, which finds its global rank, and one launcher a host, which
numbers its own processes. A port stands here as a mark; the shepherds choose the ports and put
them in (agent/starter/process/ports.py).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence

import msgspec

from agent.launch import gpus
from agent.starter.protocol.part import PortsSpec, TaskSpec
from proto import agent_pb2 as pb

PER_RANK = ("pytorch", "lightning", "deepspeed", "tensorflow", "horovod", "jax")
PER_HOST = ("torchrun",)
_EXTRA_PORT = ("jax", "horovod")
_TAKES_ALL_GPUS = ("tensorflow", "jax")
"""These use every GPU that they see: each rank is shown its own. The others pick one of their host's by LOCAL_RANK."""
FIRST_PORT, PORTS = 20000, 12000
"""Below the ports that the system gives to whoever asks for any."""

_LEFT = (
    "MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK NODE_RANK GROUP_WORLD_SIZE"
    " LOCAL_SIZE CROSS_RANK CROSS_SIZE TF_CONFIG LAVA_PEERS LAVA_LAUNCH JAX_COORDINATOR_ADDRESS JAX_NUM_PROCESSES"
    " JAX_PROCESS_ID ROLE_RANK ROLE_WORLD_SIZE ROLE_NAME LAVA_ROLE LAVA_INDEX LAVA_RANK LAVA_SIZE LAVA_PORT LAVA_RESTARTS"
    " LAVA_HOSTFILE VC_TASK_INDEX VK_TASK_INDEX MPI_HOST COORDINATOR_ADDRESS COORDINATOR_PORT NUM_PROCESSES PROCESS_ID"
    " MX_CONFIG POD_IP GLOO_SOCKET_IFNAME TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
)
_THREADS = "OMP_NUM_THREADS"
_LEFT_BY_RANKS = frozenset(_LEFT.split())
_LEFT_PREFIXES = ("JSM_NAMESPACE_", "HOROVOD_", "PET_", "TORCHELASTIC_", "LAVA_PEER_", "LAVA_COUNT_", "PADDLE_", "DMLC_")


class Launch(msgspec.Struct, frozen=True):
    """What ``-a`` asked for: ``tensorflow(chief)`` is kind tensorflow with the word chief."""

    kind: str
    words: frozenset[str] = frozenset()

    def value(self, name: str) -> str:
        """N of the word ``name=N``, "" without one."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"{name}=")), "")


def with_words(text: str) -> Launch:
    """``kind(word,word)`` apart."""
    kind, _, rest = text.partition("(")
    return Launch(kind, frozenset(word for word in rest.rstrip(")").split(",") if word))


def parse(launch: str) -> Launch | None:
    """The launch of a job's text, None where no framework is asked for."""
    found = with_words(launch)
    return found if found.kind in PER_RANK or found.kind in PER_HOST else None


def on_every_host(launch: str) -> bool:
    """Whether tasks are started on all hosts of the job, not the command once."""
    return launch in ("mpi", "roles") or parse(launch) is not None


def inherited(env: Mapping[str, str]) -> Mapping[str, str]:
    """The submitter's variables; if a rank submitted the job, without those of that rank."""
    if "LAVA_PEERS" not in env:
        return env
    found = {n: v for n, v in env.items() if n not in _LEFT_BY_RANKS and not n.startswith(_LEFT_PREFIXES)}
    if found.get(_THREADS) == "1":
        del found[_THREADS]  # any other number is the user's own
    return found


def mark(place: int, number: int) -> str:
    """The placeholder for a port of a host, until that host has chosen the port."""
    return f"@LAVA_PORT_{place}_{number}@"


def ports(launch: Launch, start: pb.Start, uid: str) -> PortsSpec:
    """The ports of a host: how many this host is to keep free, where to begin to look, and which it serves itself."""
    count = 0
    if launch.kind == "tensorflow":
        count = start.hosts[start.place].slots
    elif start.place == 0:
        count = 2 if launch.kind in _EXTRA_PORT else 1
    elif launch.kind == "horovod":
        count = 1
    first = FIRST_PORT + zlib.crc32(uid.encode()) % PORTS
    asked = PortsSpec(start.place, len(start.hosts), count, first, FIRST_PORT, PORTS)
    if launch.kind == "horovod":
        return asked._replace(serve=count - 1, key=_rendezvous_key(start))
    return asked


def address_of(hosts: Sequence[pb.HostSlots], place: int) -> str:
    """Where a host is reached; a job on one host stays inside it."""
    return "127.0.0.1" if len(hosts) == 1 else hosts[place].address or hosts[place].host


def peers(hosts: Sequence[pb.HostSlots]) -> str:
    """LAVA_PEERS: ``name:ranks:address`` of each host, in the order of the ranks."""
    return " ".join(f"{h.host}:{h.slots}:{address_of(hosts, place)}" for place, h in enumerate(hosts))


def shared(launch: Launch, start: pb.Start, given: Mapping[str, str], interface: str) -> dict[str, str]:
    """What all tasks of a host have. ``given``: the submitter's own; ``interface``: the one that has this host's address."""
    env = {
        "MASTER_ADDR": address_of(start.hosts, 0),
        "MASTER_PORT": mark(0, 0),
        "GROUP_RANK": str(start.place),
        "NODE_RANK": str(start.place),
        "GROUP_WORLD_SIZE": str(len(start.hosts)),
        "LAVA_PEERS": peers(start.hosts),
        "LAVA_LAUNCH": launch.kind,
    }
    if _THREADS not in given:
        env[_THREADS] = "1"
    if launch.kind == "horovod" and (found := _toward(start, interface)):
        env["HOROVOD_GLOO_IFACE"] = found
    return env | gloo(start, given, interface)


def _toward(start: pb.Start, interface: str) -> str:
    """The interface by which tasks here reach the others, loopback for its addresses. ``interface``: as of ``shared``."""
    return "lo" if address_of(start.hosts, start.place).startswith("127.") else interface


def gloo(start: pb.Start, given: Mapping[str, str], interface: str) -> dict[str, str]:
    """What Gloo has to be told, which else takes the address of the host's own name: none at all, or 127.0.1.1 on Debian."""
    found = _toward(start, interface)
    return {"GLOO_SOCKET_IFNAME": found} if found and "GLOO_SOCKET_IFNAME" not in given else {}


def of_rank(launch: Launch, start: pb.Start, local: int, each: int = 0) -> dict[str, str]:
    """What one rank has of its own: ``local`` is its number on this host. ``each``: GPUs of a task, 0: they are the host's."""
    hosts, place = start.hosts, start.place
    here = hosts[place]
    rank, size = sum(h.slots for h in hosts[:place]) + local, sum(h.slots for h in hosts)
    env = {
        "RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_RANK": str(local),
        "LOCAL_WORLD_SIZE": str(here.slots),
    }
    cards = list(here.gpus)
    own = launch.kind in _TAKES_ALL_GPUS or "gpu" in launch.words or each > 1
    if cards and len(cards) % here.slots == 0 and own:
        share = len(cards) // here.slots
        env |= gpus.seen(cards[local * share : (local + 1) * share])
    world = _World(rank, size, local, here.slots, *_across(hosts, place, local))
    more = _OWN.get(launch.kind)
    return env | more(launch, start, world) if more else env


class _World(msgspec.Struct, frozen=True):
    """A rank's number and count among all ranks, among those of its host, and among those with its local number."""

    rank: int
    size: int
    local: int
    local_size: int
    cross: int
    cross_size: int


def _across(hosts: Sequence[pb.HostSlots], place: int, local: int) -> tuple[int, int]:
    wide = [number for number, host in enumerate(hosts) if host.slots > local]
    return wide.index(place), len(wide)


def _lightning(_: Launch, __: pb.Start, world: _World) -> dict[str, str]:
    return {
        "JSM_NAMESPACE_RANK": str(world.rank),
        "JSM_NAMESPACE_SIZE": str(world.size),
        "JSM_NAMESPACE_LOCAL_RANK": str(world.local),
        "JSM_NAMESPACE_LOCAL_SIZE": str(world.local_size),
    }


def _deepspeed(_: Launch, __: pb.Start, world: _World) -> dict[str, str]:
    return {"LOCAL_SIZE": str(world.local_size), "CROSS_RANK": str(world.cross), "CROSS_SIZE": str(world.cross_size)}


def _jax(_: Launch, start: pb.Start, world: _World) -> dict[str, str]:
    return {
        "JAX_COORDINATOR_ADDRESS": f"{_literal(address_of(start.hosts, 0))}:{mark(0, 1)}",
        "JAX_NUM_PROCESSES": str(world.size),
        "JAX_PROCESS_ID": str(world.rank),
    }


def _rendezvous_key(start: pb.Start) -> str:
    """What the ranks show at their meeting point: known to this attempt alone, and of no use for anything else."""
    return hashlib.sha256(f"rendezvous {start.token}".encode()).hexdigest()


def _horovod(_: Launch, start: pb.Start, world: _World) -> dict[str, str]:
    port = mark(start.place, 0 if start.place else 1)
    return {
        "HOROVOD_CONTROLLER": "gloo",
        "HOROVOD_CPU_OPERATIONS": "gloo",
        # the ranks ask for http://ADDR:PORT/SCOPE/NAME, and can send the key in no other way
        "HOROVOD_GLOO_RENDEZVOUS_ADDR": f"127.0.0.1:{port}/{_rendezvous_key(start)}",
        "HOROVOD_GLOO_RENDEZVOUS_PORT": port,
        "HOROVOD_HOSTNAME": start.hosts[start.place].host,
        "HOROVOD_RANK": str(world.rank),
        "HOROVOD_SIZE": str(world.size),
        "HOROVOD_LOCAL_RANK": str(world.local),
        "HOROVOD_LOCAL_SIZE": str(world.local_size),
        "HOROVOD_CROSS_RANK": str(world.cross),
        "HOROVOD_CROSS_SIZE": str(world.cross_size),
    }


def _tensorflow(launch: Launch, start: pb.Start, world: _World) -> dict[str, str]:
    hosts = start.hosts
    all_of = [
        f"{_literal(address_of(hosts, place))}:{mark(place, number)}"
        for place, host in enumerate(hosts)
        for number in range(host.slots)
    ]
    cluster, task = {"worker": all_of}, {"type": "worker", "index": world.rank}
    if "chief" in launch.words:
        cluster = {"chief": all_of[:1]} | ({"worker": all_of[1:]} if all_of[1:] else {})
        first = world.rank == 0
        task = {"type": "chief" if first else "worker", "index": 0 if first else world.rank - 1}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def _literal(address: str) -> str:
    return f"[{address}]" if ":" in address else address


_OWN = {
    "lightning": _lightning,
    "deepspeed": _deepspeed,
    "jax": _jax,
    "horovod": _horovod,
    "tensorflow": _tensorflow,
}


def tasks(launch: Launch, start: pb.Start, each: int = 0, resizable: bool = False) -> tuple[TaskSpec, ...]:
    """The ranks of this host, or its one launcher, which has the number of the host. ``each``: as of ``of_rank``.

    ``resizable``: hosts come and go, and no two of them have one number, though their places change.
    """
    if launch.kind in PER_HOST:
        number = start.hosts[start.place].node_index if resizable else start.place
        return (TaskSpec(number, {"LSF_PM_TASKID": str(number + 1)}),)
    first = sum(host.slots for host in start.hosts[: start.place])
    return tuple(
        TaskSpec(first + local, {"LSF_PM_TASKID": str(first + local + 1)} | of_rank(launch, start, local, each))
        for local in range(start.hosts[start.place].slots)
    )

"""The tasks of a job with roles on this host: what each runs, and the environment by which it finds the others.

Rule: pure. A port stands here as a mark until the host that will listen has chosen it (agent/starter/process/ports.py);
every task has one of its own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence

import msgspec

from agent.launch import command, frameworks, gpus, launchers, mpi, software
from agent.launch.frameworks import FIRST_PORT, PORTS, address_of, mark
from agent.launch.limits import rlimits
from agent.starter.protocol.part import BlaunchSpec, LinkSpec, PortsSpec, TaskSpec
from proto import agent_pb2 as pb

KIND = "roles"
SCRATCH = "scratch"
MPI = ("mpi", "mpich", "intelmpi")
COLONS = ("mpich", "intelmpi")
"""Their launchers read a host file of ``host:slots``, Open MPI's one of ``host slots=N``."""
LAUNCHED = (*MPI, "volcano")
MOST_PEERS = 1000
"""Tasks beyond these are in no LAVA_PEER_ variable: an environment has an end."""
Hosts = Sequence[pb.HostSlots]
Files = tuple[str, str, str, str]
Write = Callable[[Sequence[str]], Files]
"""Of a list with one host name a slot: its host file, its rank file, Open MPI's, and MPICH's."""


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


class RolePart(msgspec.Struct, frozen=True):
    """What roles decide of a part: fields of ``PartSpec``."""

    env: dict[str, str]
    """Further variables of the part."""
    tasks: tuple[TaskSpec, ...]
    ports: PortsSpec
    link: LinkSpec | None
    serve: BlaunchSpec | None


def of_host(order: pb.Order, text: pb.JobText, path: str, address: str, write: Write, scratch: str = "") -> RolePart:
    """The tasks of this host, their ports, links to the other hosts, the service of blaunch.

    ``scratch``: what the names of this job's scratch folders begin with.
    """
    start = order.start
    peers = peers_of(start.hosts)
    mine = [peer for peer in peers if peer.place == start.place]
    first = FIRST_PORT + zlib.crc32(order.uid.encode()) % PORTS
    hosts = _worker_hosts(peers, text, start.hosts)
    files = write(hosts)
    places = {"/etc/mpi/hostfile": files[3] if text.framework in COLONS else files[2], SCRATCH: scratch}
    for number, role in enumerate(text.roles) if text.framework == "volcano" else ():
        names = [start.hosts[peer.place].host for peer in peers if peer.role == number]
        places[f"/etc/volcano/{role.name}.host"] = write(names)[0]
    env = shared(peers, text, start)
    if text.framework in LAUNCHED:
        env |= _mpi(hosts, files, start.hosts, address)
    blaunch = any(role.kind for role in text.roles) or text.framework in LAUNCHED
    return RolePart(
        env,
        _tasks(mine, peers, order, text, path, places),
        PortsSpec(start.place, len(start.hosts), len(mine), first, FIRST_PORT, PORTS),
        mpi.link(start, address),
        launchers.serve(start) if blaunch else None,
    )


def _tasks(
    mine: list[Peer], peers: list[Peer], order: pb.Order, text: pb.JobText, path: str, places: dict[str, str]
) -> tuple[TaskSpec, ...]:
    cards = list(order.start.hosts[order.start.place].gpus)
    has_gpus = bool(cards)
    tasks = []
    for peer in mine:
        role = text.roles[peer.role]
        given, cards = cards[: role.gpus], cards[role.gpus :]
        env = {name: value for name, value in role.env.items() if not gpus.is_own(name)} | own(peer, peers, text, order)
        if role.gpus or has_gpus:
            env |= gpus.seen(given)
        scratch = f"{places[SCRATCH]}.{role.name}.{peer.index}" if role.scratch else ""
        env = {name: _with_places(value, places) for name, value in env.items()}
        if scratch:
            env["LAVA_SCRATCH"] = scratch
        holds = role.kind == "hold"
        argv: tuple[str, ...] | None = None
        if not holds:
            line = _with_places(role.command, places)
            words = command.command_argv(line, path, text.login_shell, text.job_starter)
            argv = tuple(software.wrap([*text.software, *role.software], words))
        task = TaskSpec(
            peer.rank,
            env,
            argv,
            cwd=role.cwd,
            rlimits=rlimits(_limits(role, text)),
            label=f"{role.name}[{peer.index}]",
            scratch=scratch,
            hold=holds,
            late=role.kind == "launcher" and text.launcher_start != "at_once",
        )
        tasks.append(task)
    return tuple(tasks)


def _with_places(text: str, places: dict[str, str]) -> str:
    """The files that Kubernetes' operators put in /etc are ours, elsewhere."""
    if "/etc/" in text:
        for place, path in places.items():
            text = text.replace(place, path) if place.startswith("/") else text
    return text


def _limits(role: pb.Role, text: pb.JobText) -> pb.Limits:
    """The role's limits, the job's where it has none."""
    found = pb.Limits(core=-1)
    for name in ("cpu", "mem", "swap", "file", "data", "stack"):
        setattr(found, name, getattr(role.limits, name) or getattr(text.limits, name))
    found.core = role.limits.core if role.limits.core >= 0 else text.limits.core
    return found


def memory_limit(text: pb.JobText, hosts: Hosts, rank: int) -> int:
    """KB that the task of this rank may use, 0: its role does not say."""
    seen = 0
    for number, role in enumerate(text.roles):
        seen += sum(part.count for host in hosts for part in host.roles if part.role == number)
        if rank < seen:
            return int(role.limits.mem)
    return 0


# -- environments --------------------------------------------------------------------------------------------------------


def shared(peers: list[Peer], text: pb.JobText, start: pb.Start) -> dict[str, str]:
    """What all tasks have: who is where, by role and index."""
    env = {"LAVA_SIZE": str(len(peers)), "LAVA_PEERS": frameworks.peers(start.hosts), "LAVA_LAUNCH": text.framework or KIND}
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
    framework = _FRAMEWORKS.get(text.framework)
    return env | framework(peer, peers, text, order) if framework else env


def variable(name: str) -> str:
    """A role's name in the name of a variable."""
    return name.upper().replace("-", "_")


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
    job = f"{order.key & 0xFFFFFFFF}" + (f".{order.key >> 32}" if order.key >> 32 else "")
    if any(role.least < role.count for role in text.roles):
        return env | {
            "PET_RDZV_BACKEND": "c10d",
            "PET_RDZV_ENDPOINT": master.at,
            "PET_RDZV_ID": f"lava-{job}-{order.attempt}",
            "PET_RDZV_CONF": f"is_host={1 if rank == 0 else 0}",
        }
    return env | {"PET_MASTER_ADDR": master.address, "PET_MASTER_PORT": master.port}


def _tensorflow(peer: Peer, peers: list[Peer], text: pb.JobText, _: pb.Order) -> dict[str, str]:
    """TF_CONFIG; an evaluator is no member of the cluster that trains."""
    cluster: dict[str, list[str]] = {}
    for one in peers:
        name = text.roles[one.role].name.lower()
        if name != "evaluator":
            cluster.setdefault(name, []).append(one.at)
    task = {"type": text.roles[peer.role].name.lower(), "index": peer.index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


def _volcano(peer: Peer, peers: list[Peer], text: pb.JobText, _: pb.Order) -> dict[str, str]:
    """What the plugins svc and env give."""
    env = {"VC_TASK_INDEX": str(peer.index), "VK_TASK_INDEX": str(peer.index)}
    for number, role in enumerate(text.roles):
        hosts = [one.address for one in peers if one.role == number]
        env[f"VC_{variable(role.name)}_HOSTS"] = ",".join(hosts)
        env[f"VC_{variable(role.name)}_NUM"] = str(len(hosts))
    return env


_FRAMEWORKS: dict[str, Callable[[Peer, list[Peer], pb.JobText, pb.Order], dict[str, str]]] = {
    "pytorch": _pytorch,
    "tensorflow": _tensorflow,
    "volcano": _volcano,
}


# -- MPI launchers -------------------------------------------------------------------------------------------------------


def _worker_hosts(peers: list[Peer], text: pb.JobText, hosts: Hosts) -> list[str]:
    """One host name a slot of those tasks in which a launcher may start processes: by rank, without the launcher's own."""
    workers = [peer for peer in peers if text.roles[peer.role].kind != "launcher"] or peers
    own = text.nproc if text.framework in MPI else 0
    return [hosts[peer.place].host for peer in workers for _ in range(own or text.roles[peer.role].slots)]


def _mpi(names: list[str], files: Files, hosts: Hosts, address: str) -> dict[str, str]:
    """LSF's variables as a launcher reads them: the slots of the workers alone."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    found = {
        "LSB_MCPU_HOSTS": "".join(f"{host} {count} " for host, count in counts.items()),
        "LSB_HOSTS": " ".join(names),
        "LSB_DJOB_HOSTFILE": files[0],
        "LSB_DJOB_RANKFILE": files[1],
        "LSB_DJOB_NUMPROC": str(len(names)),
        "LSB_MAX_NUM_PROCESSORS": str(len(names)),
        "LAVA_HOSTFILE": files[2],
    }
    return found | launchers.own(files[2])


def _literal(address: str) -> str:
    return f"[{address}]" if ":" in address else address

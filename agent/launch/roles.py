"""The tasks of a job with roles on this host: what each runs, and the environment by which it finds the others.

Rule: pure. A port stands here as a mark until the host that will listen has chosen it (agent/starter/process/ports.py);
every task has one of its own.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import msgspec

from agent.launch import command, gpus, launchers, mpi, software
from agent.launch.frameworks import FIRST_PORT, PORTS, with_words
from agent.launch.limits import rlimits
from agent.launch.role_env import Hosts, Peer, own, peers_of, shared
from agent.starter.protocol.part import BlaunchSpec, LinkSpec, PortsSpec, TaskSpec
from proto import agent_pb2 as pb
from proto.roles import LAUNCHERS

SCRATCH = "scratch"
MPI = ("mpi", "mpich", "intelmpi")
COLONS = ("mpich", "intelmpi")
"""Their launchers read a host file of ``host:slots``, Open MPI's one of ``host slots=N``."""
LAUNCHED = (*MPI, "volcano")
Files = tuple[str, str, str, str]
Write = Callable[[Sequence[str]], Files]
"""Of a list with one host name a slot: its host file, its rank file, Open MPI's, and MPICH's."""


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
    framework = with_words(text.framework).kind
    places = {"/etc/mpi/hostfile": files[3] if framework in COLONS else files[2], SCRATCH: scratch}
    for number, role in enumerate(text.roles) if framework == "volcano" else ():
        names = [start.hosts[peer.place].host for peer in peers if peer.role == number]
        places[f"/etc/volcano/{role.name}.host"] = write(names)[0]
    env = shared(peers, text, start)
    if framework in LAUNCHED:
        env |= _mpi(hosts, files)
    blaunch = any(role.kind for role in text.roles) or framework in LAUNCHED
    return RolePart(
        env,
        _tasks(mine, peers, order, text, path, places),
        PortsSpec(start.place, len(start.hosts), len(mine), first, FIRST_PORT, PORTS),
        mpi.link(start, address),
        launchers.serve(start, text) if blaunch else None,
    )


def _tasks(
    mine: list[Peer], peers: list[Peer], order: pb.Order, text: pb.JobText, path: str, places: dict[str, str]
) -> tuple[TaskSpec, ...]:
    cards = list(order.start.hosts[order.start.place].gpus)
    has_gpus = bool(cards)
    # the files that Kubernetes' operators put in /etc are ours, elsewhere
    files = {place: at for place, at in places.items() if place.startswith("/")}
    tasks = []
    for peer in mine:
        role = text.roles[peer.role]
        given, cards = cards[: role.gpus], cards[role.gpus :]
        env = {name: value for name, value in role.env.items() if not gpus.is_own(name)} | own(peer, peers, text, order)
        if role.gpus or has_gpus:
            env |= gpus.seen(given)
        scratch = f"{places[SCRATCH]}.{role.name}.{peer.index}" if role.scratch else ""
        env = {name: command.replaced(value, files) for name, value in env.items()}
        if scratch:
            env["LAVA_SCRATCH"] = scratch
        holds = role.kind == "hold"
        argv: tuple[str, ...] | None = None
        if not holds:
            line = command.with_files(role.command, files)
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
            late=role.late or (role.kind in LAUNCHERS and text.launcher_start != "at_once"),
        )
        tasks.append(task)
    return tuple(tasks)


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


# -- MPI launchers -------------------------------------------------------------------------------------------------------


def _worker_hosts(peers: list[Peer], text: pb.JobText, hosts: Hosts) -> list[str]:
    """One host name a slot of those tasks in which a launcher may start processes: by rank, without the launcher's own."""
    workers = [peer for peer in peers if text.roles[peer.role].kind != "launcher"] or peers
    own = text.nproc if text.framework in MPI else 0
    return [hosts[peer.place].host for peer in workers for _ in range(own or text.roles[peer.role].slots)]


def _mpi(names: list[str], files: Files) -> dict[str, str]:
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

"""What other people's launchers find in a job: mpiexec of MPICH and Intel MPI, mpirun of Open MPI, all with blaunch for rsh.

Rule: pure but for ``look_up``. A launcher is given nothing but its own environment variables; a site's or a user's own
value of one of them stands.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Sequence

from agent.launch.site import Site
from agent.starter.protocol.part import BlaunchSpec
from proto import agent_pb2 as pb
from proto.options import MPI_LIBRARIES

BY_BLAUNCH = ("OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent", "I_MPI_HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP_EXEC")
"""Variables by which launchers start their ranks through blaunch."""

_unresolved: list[str] = []


def look_up(address: str) -> None:
    """Find out, beside everything else, whether this host's own name resolves: mpiexec tells its proxies that name."""
    threading.Thread(target=_look_up, args=(address,), daemon=True).start()


def _look_up(address: str) -> None:
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        if found := interface_of(address):
            _unresolved.append(found)


def interface_of(address: str) -> str:
    """The network interface that has an address, "" if none has."""
    import psutil

    for name, found in psutil.net_if_addrs().items():
        if any(one.address.partition("%")[0] == address for one in found):
            return str(name)
    return ""


def between(start: pb.Start, site: Site) -> str:
    """The interface by which the hosts of a job reach this one, "" for a job on one host and where it is not known."""
    return (site.conf.get("LAVA_MPI_INTERFACE") or interface_of(site.address)) if len(start.hosts) > 1 else ""


def shared(site: Site, uid: int, text: pb.JobText) -> dict[str, str]:
    """Variables that all jobs of a user have on this host."""
    folder = site.conf.get("LSF_BINDIR", "")
    blaunch = os.path.join(folder, "blaunch") if folder else "blaunch"
    env = {
        "OMPI_MCA_plm_rsh_agent": blaunch,
        "PRTE_MCA_plm_ssh_agent": blaunch,
        "I_MPI_HYDRA_BOOTSTRAP": "lsf",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": blaunch,
        "I_MPI_HYDRA_RMK": "lsf",
        # Jobs share hosts: two that both bind their ranks to the first cores would share these and leave the rest idle.
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "PRTE_MCA_hwloc_default_binding_policy": "none",
    }
    interface = site.conf.get("LAVA_MPI_INTERFACE") or (_unresolved[0] if _unresolved else "")
    if interface:
        env["HYDRA_IFACE"] = env["I_MPI_HYDRA_IFACE"] = interface
    if uid == 0:
        # That root has a job at all is the site's decision (LSF_ROOT_USER), made before.
        for name in ("OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"):
            env[name] = env[f"{name}_CONFIRM"] = "1"
    if text.launch in MPI_LIBRARIES:
        env["LAVA_MPI"] = text.launch
    if text.djob_disabled:
        env = {name: value for name, value in env.items() if name not in BY_BLAUNCH}
    return env


def own(slots_file: str) -> dict[str, str]:
    """Variables of one job: Open MPI's list of hosts with their slots."""
    return {"OMPI_MCA_orte_default_hostfile": slots_file, "PRTE_MCA_prte_default_hostfile": slots_file}


def names(hosts: Sequence[pb.HostSlots], address: str, machine: str) -> list[str]:
    """One name a slot for Open MPI. Hosts that are all this machine get its own name: mpirun then starts its ranks itself.

    Open MPI tells nodes apart by what they call themselves, and two that are called the same do not find each other.
    """
    return names_of([host.host for host in hosts for _ in range(host.slots)], hosts, address, machine)


def names_of(slots: Sequence[str], hosts: Sequence[pb.HostSlots], address: str, machine: str) -> list[str]:
    """The same for a list with one of these hosts a slot."""
    here = bool(address) and all(host.address == address for host in hosts)
    return [machine] * len(slots) if here else list(slots)


def slots_text(hosts: Sequence[str]) -> str:
    """A list with one name a slot as Open MPI reads it: ``host slots=N``."""
    counts: dict[str, int] = {}
    for host in hosts:
        counts[host] = counts.get(host, 0) + 1
    return "".join(f"{host} slots={count}\n" for host, count in counts.items())


def serve(start: pb.Start, text: pb.JobText, gpus: Sequence[Sequence[str]] = ()) -> BlaunchSpec | None:
    """What a part must know for tasks by blaunch; None where they are disabled, and for a job of one slot, which needs no help.

    ``gpus``: those of each task of this host, where tasks have their own.
    """
    elastic = text.resizable
    if not elastic and (text.djob_disabled or sum(host.slots for host in start.hosts) < 2):
        return None
    hosts, cards = tuple(host.host for host in start.hosts), tuple(",".join(own) for own in gpus)
    if not elastic:
        return BlaunchSpec(start.place, hosts, gpus=cards)
    node_indices = tuple(host.node_index for host in start.hosts)
    return BlaunchSpec(node_indices[start.place], hosts, node_indices, cards)

"""Record of a host: what its agent said of it and what an administrator did to it."""

from __future__ import annotations

import msgspec

from lavad.core.lang.states import HostState

HELD_BY_PROCESS = "held"
"""The cause of a GPU that is closed for as long as processes hold it."""
BY = "lava"
"""Who closes and opens hosts and GPUs where it is the master by itself."""


class Gpu(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A GPU, or an instance of one that is split (MIG), as NVML names it; memory in MB."""

    uuid: str
    index: int = 0
    model: str = ""
    memory: int = 0
    minor: int = -1
    links: str = ""
    """How it is joined to each GPU of its host, as ``core.site.gpu_links`` reads it; "": not known."""
    numa: int = -1
    bus: str = ""
    """Its PCI address."""
    split: bool = False
    """It is in MIG mode: its instances are given to jobs, not itself."""
    parent: str = ""
    """Of an instance: the UUID of its GPU."""
    profile: str = ""
    """Of an instance: as ``nvidia-smi mig -lgip`` names it, ``1g.10gb``."""
    slices: int = 0
    """Of an instance: compute slices of its GPU instance; ``compute_slices``: of its compute instance."""
    compute_slices: int = 0


class Mount(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A mounted file system; ``source`` is where a shared one comes from (``server:/export``)."""

    path: str
    shared: bool = False
    """Other hosts may see what is on it."""
    source: str = ""


class ClosedGpu(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A GPU that no new job gets, since ``at`` (seconds since the epoch)."""

    uuid: str
    at: float = 0.0
    by: str = ""
    """Who closed it, or ``BY``."""
    why: str = ""
    cause: str = ""
    """Of one that the master closed: for what (``core.decide.report.gpus``)."""


class Facts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Static facts of a host, from its agent's greeting. Memory in MB."""

    ncpus: int = 1
    max_mem: int = 0
    max_swap: int = 0
    max_tmp: int = 0
    type: str = "X86_64"
    model: str = "UNKNOWN"
    cpu_factor: float = 1.0
    boot_id: str = ""
    gpus: tuple[Gpu, ...] = ()
    address: str = "127.0.0.1"
    version: str = ""
    ncores: int = 0
    nprocs: int = 1
    nthreads: int = 0
    topology: str = ""
    """Sockets, NUMA nodes, cores and threads, as ``core.lang.topology`` reads them; "": not known."""
    starter: int = 1
    """The protocol of its starter, whose shepherds speak with each other: a job's hosts must have the same."""
    gpu_driver: str = ""
    """Version of the driver, "" without one."""
    mounts: tuple[Mount, ...] = ()
    """Those that tell which folders other hosts may see; (): not told."""
    copies_port: int = 0
    """Where copies of checkpoints of other hosts are taken (LAVA_CHKPNT_COPY_DIR), 0: nowhere."""
    resources: tuple[str, ...] = ()
    """Boolean resources that its agent has found out (``resreq.FOUND``)."""
    local: tuple[tuple[str, str], ...] = ()
    """Resources that its own lsf.conf gives it (LSF_LOCAL_RESOURCES), boolean ones as ("name", ""), by name."""
    chunks: bool = False
    """Its agent has the jobs of a chunk wait for each other."""
    agent: str = ""
    """Which agent this is, as it has drawn for its folder; "": not told."""


LEAVING = "leaving"
"""Why the master has closed a host that is to leave the cluster when it is unused."""


class Host(msgspec.Struct, frozen=True, omit_defaults=True):
    """A host that has been seen or is configured."""

    name: str
    facts: Facts = Facts()
    state: HostState = HostState.UNAVAIL
    since: float = 0.0
    closed: bool = False
    """By an administrator (badmin hclose), or by the master."""
    closed_by: str = ""
    closed_for: str = ""
    """By the master: for what (``core.decide.control.faulty_hosts``, or LEAVING); "": by somebody else."""
    comment: str = ""
    joined: float = 0.0
    """First seen; 0: only configured so far."""
    closed_gpus: tuple[ClosedGpu, ...] = ()
    opened_gpus: tuple[ClosedGpu, ...] = ()
    """Those that an administrator has opened, as the master had closed them, and that have not been well since."""
    up: float = 0.0
    """Seconds that it was up before ``since``."""
    failures: int = 0
    """How often it fell silent while no administrator had closed it."""

    @property
    def is_faulty(self) -> bool:
        """Whether the master has closed it for what goes wrong there."""
        return self.closed_for not in ("", LEAVING)

    def closed_devices(self) -> frozenset[str]:
        """The UUIDs of GPUs, and of instances of them, that no new job gets."""
        if not self.closed_gpus:
            return frozenset()
        closed = {gpu.uuid for gpu in self.closed_gpus}
        return frozenset((*closed, *(gpu.uuid for gpu in self.facts.gpus if gpu.parent in closed)))

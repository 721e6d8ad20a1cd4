"""What this host is: processors, memory, type and model. Its GPUs, whose driver may hang, are told apart (``gpu.watch``)."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata

import psutil

from agent.monitor.topology import read_topology
from agent.starter.system import mounts
from agent.starter.system.kernel import boot_id
from proto import agent_pb2

MB = 1 << 20
_NOISE = re.compile(r"\((?:R|TM|C)\)|\bCPU\b|\bProcessor\b|@.*", re.IGNORECASE)
_TYPES = {"x86_64": "X86_64", "aarch64": "LINUX_ARM64"}


def facts(address: str, ncpus: int | None = None, tmp: str = "/tmp") -> agent_pb2.Facts:
    """``address``: where other hosts reach this one. ``ncpus``: what the site says in place of the processors found.

    As in LSF, ``ncores`` are cores of one processor, ``nthreads`` threads of one core; ``ncpus`` is what may be used.
    """
    text = _read_cpuinfo()
    logical = psutil.cpu_count(logical=True) or 1
    cores = psutil.cpu_count(logical=False) or logical
    sockets = _count_sockets(text)
    return agent_pb2.Facts(
        ncpus=ncpus or _usable_cpus(logical),
        max_mem=psutil.virtual_memory().total // MB,
        max_swap=psutil.swap_memory().total // MB,
        max_tmp=_tmp_size(tmp),
        type=_TYPES.get(platform.machine(), platform.machine().upper()),
        model=_model(text),
        cpu_factor=1.0,
        boot_id=boot_id(),
        address=address,
        version=_version(),
        ncores=max(1, cores // sockets),
        nprocs=sockets,
        nthreads=max(1, logical // cores),
        topology=read_topology(),
        mounts=[agent_pb2.Mount(**mount._asdict()) for mount in mounts.that_matter(mounts.read())],
    )


def _usable_cpus(logical: int) -> int:
    """Those that this process may run on: a cpuset or a container may give fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0)) or logical
    except OSError:
        return logical


def _read_cpuinfo() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def _count_sockets(cpuinfo: str) -> int:
    return len(set(re.findall(r"^physical id\s*:\s*(\d+)", cpuinfo, re.MULTILINE))) or 1


def _model(cpuinfo: str) -> str:
    """The processor's name as one word ("AMD_EPYC_9654"), as models are in LSF's files; "UNKNOWN" without one."""
    found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    name = _NOISE.sub(" ", found.group(1)) if found else ""
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", name).strip("_") or "UNKNOWN"


def _tmp_size(folder: str) -> int:
    try:
        return int(psutil.disk_usage(folder).total) // MB
    except OSError:
        return 0


def _version() -> str:
    try:
        return metadata.version("lavad")
    except metadata.PackageNotFoundError:
        return ""

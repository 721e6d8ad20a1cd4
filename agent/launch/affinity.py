"""affinity[]: what the tasks of a part are bound to, for the starter and for the job's environment.

Rule: a rank is bound to its own processors; a command that starts its tasks itself, to all that the part has on its host.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from agent.launch.hostfiles import HostFiles
from agent.monitor.topology import SIMULATED
from agent.starter.protocol.part import Binding, CgroupLimits, PartSpec
from proto import agent_pb2 as pb


def environment(start: pb.Start, files: HostFiles) -> dict[str, str]:
    """The variables of the part as a whole."""
    binds = start.hosts[start.place].binds
    if not binds:
        return {}
    lines = "".join(_line(host.host, bind) for host in start.hosts for bind in host.binds)
    return {**_variables(binds), "LSB_AFFINITY_HOSTFILE": files.affinity(lines)}


def bound(part: PartSpec, start: pb.Start, enforce: bool = False) -> PartSpec:
    """The part with the bindings of itself and of its tasks. ``enforce``: no process of it can leave those of the part."""
    binds = start.hosts[start.place].binds
    if not binds:
        return part
    simulated = SIMULATED in os.environ
    if not simulated:
        together = _together(binds)
        part = part._replace(bind=together)
        if enforce:
            nodes = together.nodes if together.only else ()
            part = part._replace(cgroup=(part.cgroup or CgroupLimits())._replace(cpuset=together.cpus, nodes=nodes))
    tasks = part.tasks or ()
    if len(tasks) != len(binds) or tasks[0].rank < 0:
        return part
    each = [
        task._replace(env={**task.env, **_variables([bind])}, bind=None if simulated else _together([bind]))
        for task, bind in zip(tasks, binds, strict=True)
    ]
    return part._replace(tasks=tuple(each))


def _together(binds: Sequence[pb.Bind]) -> Binding:
    cpus = sorted({cpu for bind in binds for cpu in bind.cpus})
    nodes = sorted({node for bind in binds for node in bind.nodes})
    return Binding(tuple(cpus), tuple(nodes), any(bind.only for bind in binds))


def _variables(binds: Sequence[pb.Bind]) -> dict[str, str]:
    together = _together(binds)
    found = {"LSB_BIND_CPU_LIST": _list(together.cpus)}
    if together.nodes:
        found["LSB_BIND_MEM_LIST"] = _list(together.nodes)
        found["LSB_BIND_MEM_POLICY"] = "localonly" if together.only else "localprefer"
    return found


def _line(host: str, bind: pb.Bind) -> str:
    """LSF's: host, CPUs, and where memory is bound its nodes and 1 (localonly) or 2 (localprefer)."""
    memory = f" {_list(bind.nodes)} {1 if bind.only else 2}" if bind.nodes else ""
    return f"{host} {_list(bind.cpus)}{memory}\n"


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))

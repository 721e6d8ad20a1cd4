"""affinity[]: what the tasks of a part are bound to, for the starter and for the job's environment.

Rule: a rank is bound to its own processors; a command that starts its tasks itself, to all that the part has on its host.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from agent.launch.hostfiles import HostFiles
from agent.monitor.topology import SIMULATED
from proto import agent_pb2 as pb


def environment(start: pb.Start, files: HostFiles) -> dict[str, str]:
    """The variables of the part as a whole."""
    binds = start.hosts[start.place].binds
    if not binds:
        return {}
    lines = "".join(_line(host.host, bind) for host in start.hosts for bind in host.binds)
    return {**_variables(binds), "LSB_AFFINITY_HOSTFILE": files.affinity(lines)}


def add(fields: dict[str, Any], start: pb.Start) -> None:
    """Bindings for the starter, in the part and in its tasks."""
    binds = start.hosts[start.place].binds
    if not binds:
        return
    simulated = SIMULATED in os.environ
    if not simulated:
        fields["bind"] = _together(binds)
    tasks = fields.get("tasks") or []
    if len(tasks) != len(binds) or tasks[0]["rank"] < 0:
        return
    for task, bind in zip(tasks, binds, strict=True):
        task["env"] = {**task["env"], **_variables([bind])}
        if not simulated:
            task["bind"] = _together([bind])


def _together(binds: Sequence[pb.Bind]) -> dict[str, Any]:
    cpus = sorted({cpu for bind in binds for cpu in bind.cpus})
    nodes = sorted({node for bind in binds for node in bind.nodes})
    return {"cpus": cpus, "nodes": nodes, "only": any(bind.only for bind in binds)}


def _variables(binds: Sequence[pb.Bind]) -> dict[str, str]:
    bound = _together(binds)
    found = {"LSB_BIND_CPU_LIST": _list(bound["cpus"])}
    if bound["nodes"]:
        found["LSB_BIND_MEM_LIST"] = _list(bound["nodes"])
        found["LSB_BIND_MEM_POLICY"] = "localonly" if bound["only"] else "localprefer"
    return found


def _line(host: str, bind: pb.Bind) -> str:
    """LSF's: host, CPUs, and where memory is bound its nodes and 1 (localonly) or 2 (localprefer)."""
    memory = f" {_list(bind.nodes)} {1 if bind.only else 2}" if bind.nodes else ""
    return f"{host} {_list(bind.cpus)}{memory}\n"


def _list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))

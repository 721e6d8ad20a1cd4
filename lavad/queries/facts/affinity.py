"""affinity[] shown: bjobs -l -aff has a line for each processor unit of a task, bhosts -l -aff the host's processors as a tree.

Rule: a unit's id is /NUMA node/socket/core/thread, each counted within the one before it, cut off at the unit's level.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lavad.core.job.job import Job
from lavad.core.job.spec import Spec
from lavad.core.lang.cpus import Binding
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.text import Affinity
from lavad.core.lang.resreq.ways import ways
from lavad.core.lang.topology import Topology, parse_topology
from lavad.core.site.host import Host
from lavad.queries.facts import jobfacts
from lavad.queries.frame.view import View

_HEAD = (
    " AFFINITY:\n"
    "                     CPU BINDING                          MEMORY BINDING\n"
    "                     ------------------------             --------------------\n"
    " HOST                TYPE   LEVEL  EXCL   IDS             POL   NUMA SIZE\n"
)
_LEVELS = ("numa", "socket", "core", "thread")


def of_job(view: View, spec: Spec, job: Job) -> str:
    """The table of a job's bindings; "" if it has none."""
    parts = [part for part in jobfacts.parts_of(job) if part.binds]
    if not parts:
        return ""
    want = _wanted(view, spec, job)
    lines = [_HEAD]
    for part in parts:
        host = view.cluster.hosts.rows.get(part.host)
        topology = parse_topology(host.facts.topology) if host is not None else None
        lines += [_row(part.host, bind, want, topology) for bind in part.binds]
    return "".join(lines) + "\n"


def _wanted(view: View, spec: Spec, job: Job) -> Affinity | None:
    found = ways(resreq.parse(view.queue(spec.queue).res_req), resreq.parse(spec.resreq))
    way = found[job.run.way] if job.run is not None and job.run.way < len(found) else found[0]
    return next((term.both.affinity for term in way.terms if term.both.affinity is not None), None)


def _row(host: str, bind: Binding, want: Affinity | None, topology: Topology | None) -> str:
    unit, level = (want.unit, want.cpubind or want.unit) if want is not None else ("thread", "thread")
    exclusive = want.exclusive[0] if want is not None and want.exclusive is not None else "-"
    policy = ("local" if bind.only else "pref") if bind.nodes else "-"
    nodes = ",".join(map(str, bind.nodes)) or "-"
    ids = " ".join(_ids(bind, level, topology))
    return f" {host:<19} {unit:<6} {level:<6} {exclusive:<6} {ids:<15} {policy:<5} {nodes:<4} -\n"


def _ids(bind: Binding, level: str, topology: Topology | None) -> Iterator[str]:
    if topology is None or not topology.cpus.issuperset(bind.cpus):
        yield ",".join(map(str, bind.cpus))
        return
    seen: dict[str, None] = {}
    for cpu in bind.cpus:
        seen[_path(topology, cpu, level)] = None
    yield from seen


def _path(topology: Topology, cpu: int, level: str) -> str:
    """Where a CPU is; a socket of one node is below it, as LSF shows it."""
    socket = topology.around(frozenset((cpu,)), "socket")
    core = topology.around(frozenset((cpu,)), "core")
    near = topology.around(frozenset((cpu,)), "numa")
    cores = sorted({min(topology.around(frozenset((other,)), "core")) for other in near})
    places = (topology.nodes[cpu], topology.home["socket"][min(socket)], cores.index(min(core)), sorted(core).index(cpu))
    return "".join(f"/{place}" for place in places[: _LEVELS.index(level) + 1])


def of_host(view: View, name: str) -> str:
    """The processors of a host; those that jobs keep others off have a star."""
    host = view.cluster.hosts.rows.get(name)
    topology = parse_topology(view.cluster.topology_of(name)) if host is not None else None
    if host is None or topology is None:
        return "\n AFFINITY: Disabled\n"
    use = view.cluster.use.hosts.get(name)
    taken = use.cpus if use is not None else {}
    return "\n AFFINITY: Enabled\n" + _tree(host, topology, taken)


def topology(view: View, name: str) -> str:
    """The processors of a host alone, as lshosts -T has them."""
    host = view.cluster.hosts.rows.get(name)
    known = parse_topology(view.cluster.topology_of(name)) if host is not None else None
    return f"Host {name}: its topology is not known\n" if host is None or known is None else _tree(host, known, {})


def _tree(host: Host, topology: Topology, taken: Collection[int]) -> str:
    lines = [f" Host[{_size(host.facts.max_mem)}]    {host.name}\n"]
    for node in topology.units["numa"]:
        lines.append(f"    NUMA[{topology.nodes[min(node)]}]\n")
        for socket in dict.fromkeys(topology.home["socket"][cpu] for cpu in sorted(node)):
            lines.append(f"        Socket{socket}\n")
            cores = [core for core in topology.units["core"] if core <= node and topology.home["socket"][min(core)] == socket]
            for at, core in enumerate(cores):
                cpus = " ".join(f"*{cpu}" if cpu in taken else str(cpu) for cpu in sorted(core))
                lines.append(f"            core{at}({cpus})\n")
    return "".join(lines)


def _size(megabytes: int) -> str:
    return f"{megabytes / 1024:.1f}G" if megabytes >= 1024 else f"{megabytes}M"

"""What a job asks for and holds: its resource requirements, GPUs and processors; and the processors of a host.

Rule: where on its GPU a MIG instance lies, and the factor of a GPU, lava does not know, so that these columns of LSF have a dash
or 0. The id of a processor unit is /NUMA node/socket/core/thread, each counted within the one before it, cut off at the
level of the unit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from lavad.core.cluster.gpu_book import gpu_memory
from lavad.core.job.job import Job, Part
from lavad.core.job.spec import Spec
from lavad.core.lang import gpureq
from lavad.core.lang.cpus import Binding
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.grammar import LEVELS
from lavad.core.lang.resreq.shown import chosen, shown
from lavad.core.lang.resreq.text import Affinity
from lavad.core.lang.resreq.ways import ways
from lavad.core.lang.topology import Topology, parse_topology
from lavad.core.rules.host_values import topology_of
from lavad.core.site.host import Gpu, Host
from lavad.queries.facts import jobfacts
from lavad.queries.frame.view import View


def configured(view: View, spec: Spec) -> Iterator[tuple[str, str]]:
    """The requirements of which ``combined`` is made, by where they come from: (where, text)."""
    app = view.cluster.conf.app_conf.get(spec.app)
    yield "Job-level", spec.resreq or "-"
    yield "App-level", (app.res_req if app is not None else "") or "-"
    yield "Queue-level", view.queue(spec.queue).res_req or "-"


def combined(view: View, spec: Spec) -> str:
    """The requirement of queue and job together, as ``Combined`` of bjobs -l and ``combined_resreq`` of -o."""
    return shown(view.queue(spec.queue).res_req, spec.resreq)


def effective(view: View, spec: Spec, job: Job) -> str:
    """The requirement by which its attempt was placed; "" before the first attempt."""
    return "" if job.run is None else chosen(view.queue(job.run.queue or spec.queue).res_req, spec.resreq, job.run.way)


_GPU_HEAD = (
    " HOST             TASK GPU_ID  GI_PLACEMENT/SIZE    CI_PLACEMENT/SIZE    MODEL        MTOTAL  FACTOR MRSV    "
    "SOCKET NVLINK/XGMI                      \n"
)


def gpu_requirement(spec: Spec) -> str:
    """The requirement as it was put together from job, application and queue; "" without one."""
    if spec.gpu is None:
        return ""
    text = gpureq.show(spec.gpu)
    return f"\n GPU REQUIREMENT DETAILS:\n Combined: {text}\n Effective: {text}\n"


def gpu_allocation(view: View, job: Job) -> str:
    """The table of the GPUs that a job holds or held; "" if none."""
    memory = gpu_memory(view.spec(job))
    rows = "".join(row for part in jobfacts.parts_of(job) for row in _gpu_rows(view, part, memory))
    return f"\n GPU_ALLOCATION:\n{_GPU_HEAD}{rows}" if rows else ""


def _gpu_rows(view: View, part: Part, reserved: float) -> Iterator[str]:
    host = view.cluster.hosts.rows.get(part.host)
    gpus = host.facts.gpus if host is not None else ()
    known = {gpu.uuid: gpu for gpu in gpus}
    mine = [known.get(uuid) or Gpu(uuid=uuid, index=-1) for uuid in part.gpus]
    for at, gpu in enumerate(mine):
        whole = known.get(gpu.parent, gpu)
        sizes = (f"-/{gpu.slices}", f"-/{gpu.compute_slices}") if gpu.slices else ("-", "-")
        model, socket = gpu.model.replace(" ", "") or "-", str(gpu.numa) if gpu.numa >= 0 else "-"
        yield (
            f" {part.host if not at else '':<16.16} {_gpu_task(at, len(mine), part.slots):<4} {whole.index:<7} "
            f"{sizes[0]:<20} {sizes[1]:<20} {model:<12.12} {_gpu_memory(gpu.memory):<7} {0.0:<6} "
            f"{_reserved(reserved):<7} {socket:<6} {gpu_links(gpu, mine, gpus):<32}\n"
        )


def _gpu_task(at: int, gpus: int, tasks: int) -> str:
    """The task that a GPU of a part belongs to; ``-`` where the GPUs do not divide evenly."""
    return str(at // (gpus // tasks)) if gpus >= tasks and gpus % tasks == 0 else "-"


def gpu_links(gpu: Gpu, mine: Sequence[Gpu], gpus: Sequence[Gpu]) -> str:
    """``-/Y/N``: whether NVLink joins it to each of these GPUs of its host, which has ``gpus``."""
    if not gpu.links:
        return "-"
    joined = {other.uuid for other, letter in zip(gpus, gpu.links, strict=False) if letter == "N"}
    return "/".join("-" if other is gpu else "Y" if other.uuid in joined else "N" for other in mine)


def _reserved(mb: float) -> str:
    return _gpu_memory(int(mb)) if mb >= 1024 else f"{mb:g}M"


def _gpu_memory(mb: int) -> str:
    return f"{mb / 1024:.1f}".removesuffix(".0") + "G" if mb else "-"


_AFFINITY_HEAD = (
    " AFFINITY:\n"
    "                     CPU BINDING                          MEMORY BINDING\n"
    "                     ------------------------             --------------------\n"
    " HOST                TYPE   LEVEL  EXCL   IDS             POL   NUMA SIZE\n"
)


def job_affinity(view: View, spec: Spec, job: Job) -> str:
    """The table of a job's bindings; "" if it has none."""
    parts = [part for part in jobfacts.parts_of(job) if part.binds]
    if not parts:
        return ""
    want = _affinity_of(view, spec, job)
    lines = [_AFFINITY_HEAD]
    for part in parts:
        host = view.cluster.hosts.rows.get(part.host)
        topology = parse_topology(host.facts.topology) if host is not None else None
        lines += [_binding(part.host, bind, want, topology) for bind in part.binds]
    return "".join(lines) + "\n"


def _affinity_of(view: View, spec: Spec, job: Job) -> Affinity | None:
    run = job.run
    found = ways(resreq.parse(view.queue((run and run.queue) or spec.queue).res_req), resreq.parse(spec.resreq))
    way = found[run.way] if run is not None and run.way < len(found) else found[0]
    return next((term.both.affinity for term in way.terms if term.both.affinity is not None), None)


def _binding(host: str, bind: Binding, want: Affinity | None, topology: Topology | None) -> str:
    unit, level = (want.unit, want.cpubind or want.unit) if want is not None else ("thread", "thread")
    exclusive = want.exclusive[0] if want is not None and want.exclusive is not None else "-"
    policy = ("local" if bind.only else "pref") if bind.nodes else "-"
    nodes = ",".join(map(str, bind.nodes)) or "-"
    ids = " ".join(_unit_ids(bind, level, topology))
    return f" {host:<19} {unit:<6} {level:<6} {exclusive:<6} {ids:<15} {policy:<5} {nodes:<4} -\n"


def _unit_ids(bind: Binding, level: str, topology: Topology | None) -> Iterator[str]:
    if topology is None or not topology.cpus.issuperset(bind.cpus):
        yield ",".join(map(str, bind.cpus))
        return
    seen: dict[str, None] = {}
    for cpu in bind.cpus:
        seen[_unit_id(topology, cpu, level)] = None
    yield from seen


def _unit_id(topology: Topology, cpu: int, level: str) -> str:
    """The id of the unit that a CPU is in; a socket within one NUMA node stands below it, as LSF shows it."""
    socket = topology.around(frozenset((cpu,)), "socket")
    core = topology.around(frozenset((cpu,)), "core")
    near = topology.around(frozenset((cpu,)), "numa")
    cores = sorted({min(topology.around(frozenset((other,)), "core")) for other in near})
    places = (topology.nodes[cpu], topology.home["socket"][min(socket)], cores.index(min(core)), sorted(core).index(cpu))
    return "".join(f"/{place}" for place in places[: LEVELS.index(level) + 1])


def host_affinity(view: View, name: str) -> str:
    """The processors of a host as a tree; a star marks those that are bound to jobs."""
    host = view.cluster.hosts.rows.get(name)
    topology = parse_topology(topology_of(view.cluster, name)) if host is not None else None
    if host is None or topology is None:
        return "\n AFFINITY: Disabled\n"
    use = view.cluster.use.hosts.get(name)
    taken = use.cpus if use is not None else {}
    return "\n AFFINITY: Enabled\n" + _host_tree(host, topology, taken)


def host_topology(view: View, name: str) -> str:
    """The processors of a host as lshosts -T has them."""
    host = view.cluster.hosts.rows.get(name)
    known = parse_topology(topology_of(view.cluster, name)) if host is not None else None
    return f"Host {name}: its topology is not known\n" if host is None or known is None else _host_tree(host, known, {})


def _host_tree(host: Host, topology: Topology, taken: Collection[int]) -> str:
    lines = [f" Host[{_host_memory(host.facts.max_mem)}]    {host.name}\n"]
    for node in topology.units["numa"]:
        lines.append(f"    NUMA[{topology.nodes[min(node)]}]\n")
        for socket in dict.fromkeys(topology.home["socket"][cpu] for cpu in sorted(node)):
            lines.append(f"        Socket{socket}\n")
            cores = [core for core in topology.units["core"] if core <= node and topology.home["socket"][min(core)] == socket]
            for at, core in enumerate(cores):
                cpus = " ".join(f"*{cpu}" if cpu in taken else str(cpu) for cpu in sorted(core))
                lines.append(f"            core{at}({cpus})\n")
    return "".join(lines)


def _host_memory(megabytes: int) -> str:
    return f"{megabytes / 1024:.1f}G" if megabytes >= 1024 else f"{megabytes}M"

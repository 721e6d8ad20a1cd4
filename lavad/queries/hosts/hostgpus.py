"""The GPUs of hosts: bhosts -gpu (who holds them), lshosts -gpu (what they are), lsload -gpu and -gpuload (how busy they are)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lavad.core.lang.ids import show as show_key
from lavad.core.lang.states import SUSPENDED, HostState
from lavad.core.site.host import Gpu
from lavad.queries.facts import hostfacts
from lavad.queries.facts.resources import gpu_links
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, out

USE = "HOST_NAME              ID           MODEL     MUSED      MRSV  NJOBS    RUN   SUSP    RSV\n"
FACTS = "HOST_NAME   gpu_id       gpu_model   gpu_driver   gpu_factor      numa_id\n"
_LOADS = (
    "gpuid",
    "gpu_model",
    "gpu_mode",
    "gpu_temp",
    "gpu_ecc",
    "gpu_ut",
    "gpu_mut",
    "gpu_power",
    "gpu_mtotal",
    "gpu_mused",
    "gpu_pstate",
    "gpu_status",
    "gpu_error",
)
_WIDTHS = (6, 16, 10, 9, 9, 8, 9, 11, 12, 11, 12, 12, 11)


def show_use(request: Request, names: Iterable[str], header: bool) -> Iterator[Shown]:
    """A line a GPU: memory that the jobs on it use, and the jobs by state."""
    if header:
        yield out(USE)
    for name in names:
        jobs = _jobs(request, name)
        for gpu in hostfacts.host_of(request.view, name).facts.gpus:
            counts = jobs.get(gpu.uuid, Counter())
            yield out(
                f"{name:<18} {gpu.index:>6} {_model(gpu):>15} {formats.mb_text(counts['MUSED']):>9} {'0M':>9} "
                f"{counts['RUN'] + counts['SUSP']:>6} {counts['RUN']:>6} {counts['SUSP']:>6} {0:>6}\n"
            )


def _jobs(request: Request, name: str) -> dict[str, Counter[str]]:
    """UUID to its jobs by state, the memory (MB) and time (%) of their tasks, shared evenly by a part's GPUs, and its mode."""
    cluster, found = request.cluster, dict[str, Counter[str]]()
    use = cluster.use.hosts.get(name)
    for key, part in use.jobs.items() if use is not None else ():
        job = cluster.jobs.rows.get(key)
        usage = request.view.soft.usage.get(key, {}).get(name)
        tasks = usage.tasks if usage is not None else ()
        asked = request.view.spec(job).gpu if job is not None else None
        for uuid in part.gpus:
            counts = found.setdefault(uuid, Counter())
            counts["SUSP" if job is not None and job.state in SUSPENDED else "RUN"] += 1
            counts["NJOBS"] += 1
            counts["MUSED"] += sum(task.gpu_mem for task in tasks) // len(part.gpus)
            counts["UT"] += sum(task.gpu_util for task in tasks) // len(part.gpus)
            counts["MODE"] |= asked is not None and asked.mode == "exclusive_process"
            counts["JEXCL"] |= asked is not None and bool(asked.j_exclusive)
    return found


def _keys(request: Request, name: str) -> dict[tuple[str, str], list[int]]:
    """GPU and state to the keys of its jobs."""
    found: dict[tuple[str, str], list[int]] = {}
    use = request.cluster.use.hosts.get(name)
    for key, part in use.jobs.items() if use is not None else ():
        job = request.cluster.jobs.rows.get(key)
        for uuid in part.gpus:
            state = "SUSP" if job is not None and job.state in SUSPENDED else "RUN"
            found.setdefault((uuid, state), []).append(key)
    return found


def show_facts(request: Request, names: Iterable[str], header: bool) -> Iterator[Shown]:
    """A line a GPU; a host without one has a line with dashes."""
    if header:
        yield out(FACTS)
    for name in names:
        gpus = hostfacts.host_of(request.view, name).facts.gpus
        for at, gpu in enumerate(gpus):
            node = gpu.numa if gpu.numa >= 0 else "-"
            yield out(f"{name if not at else '':<11} {gpu.index:>6} {_model(gpu):>15.15} {'-':>12} {'-':>12} {node:>12}\n")
        if not gpus:
            yield out(f"{name:<11} {'-':>6} {'-':>15} {'-':>12} {'-':>12} {'-':>12}\n")


def _model(gpu: Gpu) -> str:
    return gpu.model.replace(" ", "") or "-"


def show_load(request: Request, names: Iterable[str], header: bool, wide: bool) -> Iterator[Shown]:
    """lsload -gpuload: a line a GPU. What its driver is not asked for (temperature, power …) has a dash."""
    names = list(names)
    shown = [at for at, title in enumerate(_LOADS) if wide or title != "gpu_power"]
    column = max([15, *(len(name) + 1 for name in names)]) if wide else 15
    if header:
        yield out(f"{'HOST_NAME':<{column}}" + "".join(f"{_LOADS[at]:>{_WIDTHS[at]}}" for at in shown) + "\n")
    for name in names:
        jobs = _jobs(request, name)
        for at, gpu in enumerate(hostfacts.host_of(request.view, name).facts.gpus):
            use = jobs.get(gpu.uuid, Counter())
            share = 100 * use["MUSED"] / gpu.memory if gpu.memory else 0.0
            values = (
                str(gpu.index),
                _model(gpu)[:15],
                str(use["MODE"]),
                "-",
                "-",
                f"{min(use['UT'], 100)}%",
                f"{share:.0f}%",
                "-",
                formats.mb_text(gpu.memory),
                formats.mb_text(use["MUSED"]),
                "-",
                "ok",
                "-",
            )
            lead = name if wide or not at else ""
            yield out(f"{lead:<{column}.{column}}" + "".join(f"{values[at]:>{_WIDTHS[at]}}" for at in shown) + "\n")


def show_sums(request: Request, names: Iterable[str], header: bool) -> Iterator[Shown]:
    """lsload -gpu: a line a host: how busy those of its GPUs are that may be shared."""
    if header:
        yield out("HOST_NAME       status  ngpus  gpu_shared_avg_mut  gpu_shared_avg_ut  ngpus_physical\n")
    for name in names:
        gpus = hostfacts.host_of(request.view, name).facts.gpus
        up = hostfacts.host_of(request.view, name).state is HostState.OK
        if not up:
            yield out(f"{name:<15.15} {'unavail':>6}\n")
            continue
        jobs = _jobs(request, name)
        uses = [(jobs.get(gpu.uuid, Counter()), gpu) for gpu in gpus]
        shared = [(use, gpu) for use, gpu in uses if not use["MODE"]]
        count = max(len(shared), 1)
        memory = sum(100 * use["MUSED"] / gpu.memory for use, gpu in shared if gpu.memory) / count
        busy = sum(min(use["UT"], 100) for use, _ in shared) / count
        yield out(f"{name:<15.15} {'ok':>6} {len(gpus):>6} {memory:>18.0f}% {busy:>17.0f}% {len(gpus):>15}\n")


def show_long(request: Request, name: str) -> str:
    """bhosts -gpu -l: what the GPUs of a host are, how they are used, and by which jobs."""
    gpus = hostfacts.host_of(request.view, name).facts.gpus
    jobs, keys = _jobs(request, name), _keys(request, name)
    free = sum(not jobs.get(gpu.uuid, Counter())["NJOBS"] for gpu in gpus)
    shareable = sum(not jobs.get(gpu.uuid, Counter())["MODE"] for gpu in gpus)
    text = (
        f"HOST: {name}\nNGPUS  NGPUS_SHARED_AVAIL  NGPUS_EXCLUSIVE_AVAIL\n{len(gpus):<6} {shareable:<19} {free}\n"
        "\nSTATIC ATTRIBUTES\nGPU_ID  MODEL            MTOTAL  FACTOR  MRSV  SOCKET  NVLINK\n"
    )
    for gpu in gpus:
        node = gpu.numa if gpu.numa >= 0 else "-"
        links = gpu_links(gpu, gpus)
        text += f"{gpu.index:<7} {_model(gpu):<16.16} {formats.mb_text(gpu.memory):<7} {'-':<7} {'0M':<5} {node:<7} {links}\n"
    text += "\nDYNAMIC ATTRIBUTES\nGPU_ID  MODE       MUSED   MRSV  TEMP  ECC  UT    MUT   PSTATE  STATUS  ERROR\n"
    for gpu in gpus:
        use = jobs.get(gpu.uuid, Counter())
        share = 100 * use["MUSED"] / gpu.memory if gpu.memory else 0.0
        mode = "EXCLUSIVE" if use["MODE"] else "SHARED"
        text += (
            f"{gpu.index:<7} {mode:<10} {formats.mb_text(use['MUSED']):<7} {'0M':<5} {'-':<5} {'-':<4} "
            f"{min(use['UT'], 100):>3}%  {share:>3.0f}%  {'-':<7} {'ok':<7} -\n"
        )
    text += "\nGPU JOB INFORMATION\nGPU_ID  JEXCL  RUNJOBIDS            SUSPJOBIDS           RSVJOBIDS\n"
    for gpu in gpus:
        run, suspended = (" ".join(map(show_key, keys.get((gpu.uuid, state), ()))) or "-" for state in ("RUN", "SUSP"))
        alone = "Y" if jobs.get(gpu.uuid, Counter())["JEXCL"] else "N"
        text += f"{gpu.index:<7} {alone:<6} {run:<20} {suspended:<20} -\n"
    return text

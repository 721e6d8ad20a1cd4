"""lava stats JOB: what a job asked for and used, in all, on each host and of each GPU, and one sentence of advice; of an array a
line for each element and their sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from lavad.core.job.job import Job
from lavad.core.lang.asks import Refused
from lavad.core.lang.ids import show as show_key
from lavad.core.lang.job_names import ArrayError, parse_job_id
from lavad.core.lang.states import FINAL, STARTED, WAITING
from lavad.queries.facts import use, visibility
from lavad.queries.facts.jobset import JobSet, Wanted
from lavad.queries.facts.use import HostUse
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request, Shown, each_job, out
from proto.advice import Use, sentence, size

_BAR = 20
_HEAD = "JOBID            STAT   HOSTS SLOTS     ELAPSED    TIME     CPU  MEMORY     GPU   PEAK_MEM\n"


def show(request: Request) -> Iterator[Shown]:
    return each_job(request, "lava stats", _of)


def _of(request: Request, word: str) -> Iterator[Shown]:
    try:
        number, indices = parse_job_id(word)
    except ArrayError as error:
        raise Refused(str(error)) from error
    wanted = Wanted(STARTED | FINAL | WAITING, ids={number: indices}, job_test=lambda job: _sees(request, job))
    jobs = iter(JobSet(request.view, wanted, None))
    first = next(jobs, None)
    if first is None:
        raise Refused(f"Job <{word}> is not found")
    second = next(jobs, None)
    if second is None:
        yield out("".join(_one(request, first)))
    else:
        yield from _array(request, number, chain((first, second), jobs))


def _sees(request: Request, job: Job) -> bool:
    return visibility.sees(request, request.view.spec(job), detail=True)


# -- one job


def _one(request: Request, job: Job) -> Iterator[str]:
    view, spec = request.view, request.view.spec(job)
    if job.run is None:
        yield f"Job <{show_key(job.key)}>, User <{spec.user}>, Queue <{spec.queue}>: {job.state.name}, it has not run\n"
        return
    hosts = use.by_host(job, view)
    used = use.of_job(job, spec, view, request.now, hosts)
    yield f"Job <{show_key(job.key)}>, Job Name <{job.name}>, User <{spec.user}>, Queue <{spec.queue}>: {job.state.name}, "
    yield f"ran {formats.hms(used.ran)} on {len(hosts)} host{'s' if len(hosts) > 1 else ''}\n"
    yield f"\n{'':<10} {'ASKED':>10} {'USED':>10} {'SHARE':>7}\n"
    gpus = [gpu for host in hosts for gpu in host.gpus]
    known = sum(gpu.known for gpu in gpus)
    yield _line("Slots", str(used.slots), f"{used.cpu / used.ran:.1f}" if used.ran else "-", used.cpu_share)
    if gpus:
        busy = sum(gpu.used for gpu in gpus)
        yield _line("GPUs", str(len(gpus)), f"{len(gpus) * busy / known:.1f}" if known else "-", busy / known if known else 0.0)
    yield _line("Memory", size(used.asked_mem) if used.asked_mem else "-", size(used.max_mem), used.mem_share)
    yield _line("Run time", formats.hms(used.run_limit) if used.run_limit else "-", formats.hms(used.ran), used.time_share)
    yield from _hosts(hosts, used)
    if job.attempt > 1:
        yield f"\nIt has been started {job.attempt} times; this is its newest attempt"
        before = job.gpus_before
        yield f", and the others held {before.held / 3600:.2f} GPU hours\n" if before is not None else "\n"
    advice = sentence(used)
    if advice and any(host.max_mem for host in hosts):  # a host that has not reported yet wastes nothing
        yield f"\nAdvice: {advice}.\n"


def _line(title: str, asked: str, got: str, share: float) -> str:
    if asked == "-":
        return f"{title:<10} {asked:>10} {got:>10} {'-':>7}\n"
    return f"{title:<10} {asked:>10} {got:>10} {100 * share:>6.0f}%  {_bar(share)}\n"


def _bar(share: float) -> str:
    filled = min(_BAR, max(0, round(share * _BAR)))
    return f"[{'|' * filled}{' ' * (_BAR - filled)}]"


def _hosts(hosts: list[HostUse], used: Use) -> Iterator[str]:
    yield "\nHOST             SLOTS   CPU_TIME    CPU   PEAK_MEM  ASKED_MEM\n"
    for host in hosts:
        share = host.cpu / (host.slots * used.ran) if used.ran and host.slots else 0.0
        asked = size(host.asked_mem) if host.asked_mem else "-"
        yield f"{host.host:<16} {host.slots:>5} {host.cpu:>9.1f}s {100 * share:>5.0f}% {size(host.max_mem):>10} {asked:>10}\n"
    if not any(host.gpus for host in hosts):
        return
    yield "\nHOST             GPU   USE   IDLE   PEAK_MEM     ENERGY\n"
    for host in hosts:
        for gpu in sorted(host.gpus, key=lambda gpu: (gpu.index, gpu.uuid)):
            index = str(gpu.index) if gpu.index >= 0 else "-"
            busy, idle = (f"{gpu.average:.0f}%", f"{100 * gpu.idle_share:.0f}%") if gpu.known else ("-", "-")
            energy = f"{gpu.energy / 1000:.1f} kJ" if gpu.energy >= 0 else "-"
            yield f"{host.host:<16} {index:>3} {busy:>5} {idle:>6} {size(gpu.max_mem * 1024):>10} {energy:>10}\n"


# -- an array


class _Sum:
    """Of many elements: shares weigh by what was asked, for the time that it was held."""

    def __init__(self) -> None:
        self.ran = 0
        self.waiting = 0
        self.seconds = self.slot_seconds = self.cpu = self.mem = self.asked_mem = self.elapsed = self.allowed = 0.0
        self.gpu_known = self.gpu_used = 0.0
        self.advice: dict[str, int] = {}

    def add(self, used: Use, hosts: Iterable[HostUse]) -> None:
        self.ran += 1
        self.seconds += used.ran
        self.slot_seconds += used.slot_seconds
        self.cpu += used.cpu
        if used.asked_mem:
            self.mem += used.max_mem * used.ran
            self.asked_mem += used.asked_mem * used.ran
        if used.run_limit:
            self.elapsed += used.ran
            self.allowed += used.run_limit
        for host in hosts:
            self.gpu_known += sum(gpu.known for gpu in host.gpus)
            self.gpu_used += sum(gpu.used for gpu in host.gpus)
        if used.max_mem and (said := sentence(used)):
            self.advice[said] = self.advice.get(said, 0) + 1


def _array(request: Request, number: int, jobs: Iterator[Job]) -> Iterator[Shown]:
    view = request.view
    total = _Sum()
    yield out(f"Array <{number}>\n{_HEAD}")
    for job in jobs:
        if job.run is None:
            total.waiting += 1
            continue
        spec, hosts = view.spec(job), use.by_host(job, view)
        used = use.of_job(job, spec, view, request.now, hosts)
        total.add(used, hosts)
        known = sum(gpu.known for host in hosts for gpu in host.gpus)
        busy = sum(gpu.used for host in hosts for gpu in host.gpus)
        yield out(
            f"{show_key(job.key):<16} {job.state.name:<6} {len(hosts):>5} {used.slots:>5} {formats.hms(used.ran):>11} "
            f"{_share(used.time_share, used.run_limit)} {_share(used.cpu_share, used.slot_seconds)} "
            f"{_share(used.mem_share, used.asked_mem)} {_share(busy / known if known else 0.0, known)} {size(used.max_mem):>10}\n"
        )
    yield out(_summed(total))


def _summed(total: _Sum) -> str:
    """The last line, how many have run, and the advice that most of them get."""

    def ratio(part: float, whole: float) -> str:
        return _share(part / whole if whole else 0.0, whole)

    text = (
        f"{'ALL':<16} {'':<6} {'':>5} {'':>5} {formats.hms(total.seconds):>11} {ratio(total.elapsed, total.allowed)} "
        f"{ratio(total.cpu, total.slot_seconds)} {ratio(total.mem, total.asked_mem)} {ratio(total.gpu_used, total.gpu_known)}\n"
    )
    text += f"\n{total.ran} of {total.ran + total.waiting} elements have run\n"
    if total.advice:
        said, many = max(total.advice.items(), key=lambda pair: pair[1])
        text += f"\nAdvice ({many} of {total.ran} elements): {said}.\n"
    return text


def _share(share: float, whole: float) -> str:
    return f"{100 * share:>6.0f}%" if whole else f"{'-':>7}"

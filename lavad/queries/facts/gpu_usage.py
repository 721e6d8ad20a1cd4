"""What a job uses, or used, of its GPUs, as bjobs, bhist and bacct show it with -l -gpu."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.job.gpu_use import GpuUse
from lavad.core.job.job import Job
from lavad.queries.facts.jobfacts import Usage
from proto import gpu_waste


def waste(usage: Usage) -> str:
    """``4 GPUs asked, 2 idle 97 % of the time``; "" where none is wasted."""
    return gpu_waste.sentence((gpu.known, gpu.idle) for _, gpus in usage.gpus for gpu in gpus)


def table(job: Job, usage: Usage) -> str:
    """A paragraph for each GPU of each host, by number, and the energy of all; "" for a job whose GPUs were not measured."""
    text = "".join(_host(host, usage.cpu_of.get(host, 0.0), gpus) for host, gpus in usage.gpus)
    if text:
        text += (
            f"\n GPU Energy Consumed: {sum(gpu.energy for _, gpus in usage.gpus for gpu in gpus if gpu.energy > 0):f} Joules\n"
        )
    before = job.gpus_before
    if before is not None:
        text += (
            f"\n GPUs of earlier attempts: {before.held:.0f} GPU seconds held, {before.used:.0f} used, {before.idle:.0f} idle, "
            f"{before.energy:.0f} Joules\n"
        )
    return text


def _host(host: str, cpu: float, gpus: tuple[GpuUse, ...]) -> str:
    ordered = sorted(gpus, key=lambda gpu: (gpu.index, gpu.uuid))
    return f"\n HOST: {host}; CPU_TIME: {cpu:.0f} seconds\n" + "\n".join("".join(_gpu(gpu)) for gpu in ordered)


def _gpu(gpu: GpuUse) -> Iterator[str]:
    yield f"    GPU ID: {gpu.index if gpu.index >= 0 else gpu.uuid}\n"
    mean = 100 * gpu.mem_used / gpu.known if gpu.known and gpu.max_mem_util >= 0 else -1.0
    lines = (
        ("Total Execution Time", f"{gpu.held:.0f} seconds"),
        ("Energy Consumed", f"{gpu.energy:.0f} Joules" if gpu.energy >= 0 else "-"),
        ("SM Utilization", _range(gpu.average, gpu.max_util, gpu.min_util)),
        ("Memory Utilization", _range(mean, gpu.max_mem_util, gpu.min_mem_util)),
        ("Max GPU Memory Used", f"{gpu.max_mem << 20} bytes"),
        ("Idle Time", f"{gpu.idle:.0f} seconds" if gpu.known else "-"),
        ("PCIe Traffic", f"{gpu.pcie_sent:.0f} MB sent, {gpu.pcie_received:.0f} MB received"),
    )
    for title, value in lines:
        yield f"        {title}: {value}\n"
    if gpu.util >= 0:
        yield f"        Now: SM Utilization {gpu.util}%, GPU Memory Used {gpu.mem << 20} bytes\n"


def _range(mean: float, most: int, least: int) -> str:
    return f"Avg {mean:.0f}%, Max {most}%, Min {least}%" if mean >= 0 else "-"

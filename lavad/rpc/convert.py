"""The only place that knows both the wire's messages and the core's records."""

from __future__ import annotations

from lavad.core.job.endpoint import Endpoint
from lavad.core.job.job import End, TaskEnd
from lavad.core.lang.states import TermReason
from lavad.core.plan.volatile import PartUsage, TaskUsage
from lavad.core.site.gpu_links import LETTERS
from lavad.core.site.host import Facts, Gpu
from proto import agent_pb2 as pb


def facts(message: pb.Facts) -> Facts:
    """What an agent says its host is."""
    gpus = tuple(
        Gpu(
            uuid=gpu.uuid,
            index=gpu.index,
            model=gpu.model,
            memory=gpu.memory_mb,
            minor=gpu.minor,
            numa=gpu.numa,
            links="".join(LETTERS.get(link, "-") for link in gpu.links),
        )
        for gpu in message.gpus
    )
    return Facts(
        ncpus=message.ncpus or 1,
        max_mem=message.max_mem_mb,
        max_swap=message.max_swap_mb,
        max_tmp=message.max_tmp_mb,
        type=message.type or "UNKNOWN",
        model=message.model or "UNKNOWN",
        cpu_factor=message.cpu_factor or 1.0,
        boot_id=message.boot_id,
        gpus=gpus,
        address=message.address,
        version=message.version,
        ncores=message.ncores,
        nprocs=message.nprocs,
        nthreads=message.nthreads,
        topology=message.topology,
    )


def endpoint(message: pb.Endpoint) -> Endpoint:
    """Where a prepared part can be reached."""
    return Endpoint(host=message.host, port=message.port, ports=tuple(message.ports), tasks_port=message.tasks_port)


def end(message: pb.Ended) -> End:
    """How a part ended."""
    tasks = tuple(
        TaskEnd(rank=task.rank, pid=task.pid, status=task.status, utime=task.utime, stime=task.stime, maxrss=task.maxrss)
        for task in message.tasks
    )
    return End(
        status=message.status,
        at=message.at,
        started=message.started,
        utime=message.utime,
        stime=message.stime,
        max_mem=message.max_mem,
        max_swap=message.max_swap,
        max_processes=message.max_processes,
        max_threads=message.max_threads,
        avg_mem=message.avg_mem,
        tasks=tasks,
        first_rank=message.first_rank if message.first_reason else -1,
        first_reason=message.first_reason,
        limit=limit(message.limit),
        lost=message.lost,
        output=message.output,
        post=message.post_status,
        cpu_peak=message.cpu_peak,
        cpu_peak_after=message.cpu_peak_after,
    )


def limit(name: str) -> TermReason:
    """A limit that an agent enforced."""
    return TermReason.__members__.get(name, TermReason.NONE)


def usage(message: pb.Usage) -> PartUsage:
    """What a part uses now."""
    tasks = tuple(
        TaskUsage(
            rank=task.rank,
            pid=task.pid,
            cpu=task.cpu,
            rss=task.rss,
            pss=task.pss,
            threads=task.threads,
            processes=task.processes,
            state=task.state,
            gpu_mem=task.gpu_mem_mb,
            gpu_util=task.gpu_util,
            wait_pid=task.wait_pid,
            waits=task.waits,
        )
        for task in message.tasks
    )
    return PartUsage(
        key=message.key,
        attempt=message.attempt,
        at=message.at,
        cpu=message.cpu,
        rss=message.rss,
        pss=message.pss,
        swap=message.swap,
        threads=message.threads,
        max_mem=message.max_mem,
        max_swap=message.max_swap,
        avg_mem=message.avg_mem,
        pids=tuple(message.pids),
        pgids=tuple(message.pgids),
        tasks=tasks,
        cpu_peak=message.cpu_peak,
        cpu_peak_after=message.cpu_peak_after,
    )

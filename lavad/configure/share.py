"""From the site's files to the policies of fair share that the core decides with; lsb.params fills what a queue leaves open."""

from __future__ import annotations

from msgspec.structs import replace

from config.model.cluster import ClusterConfig
from config.model.cluster import Params as FileParams
from config.model.queue import QueueConfig, Share
from lavad.core.site.conf import ApsConf, PartitionConf, ShareConf, Shares


def pairs(shares: tuple[Share, ...]) -> Shares:
    """(name, shares)."""
    return tuple((share.name, share.shares) for share in shares)


def group_shares(config: ClusterConfig) -> tuple[tuple[str, Shares], ...]:
    """User groups whose members have shares of their own."""
    return tuple((group.name, pairs(group.shares)) for group in config.user_groups if group.shares)


def share_conf(queue: QueueConfig, params: FileParams) -> ShareConf | None:
    """A queue's policy; None: first come, first served."""
    own_policy = queue.fairshare or queue.round_robin_policy or queue.dominant_resources or queue.queue_group
    if not (own_policy or queue.scheduler == "fair"):
        return None
    if queue.round_robin_policy or not own_policy:
        # turns: everyone has the same share of the slots, and nothing but started slots counts
        return ShareConf(shares=(("default", 1),), turns=True, cpu_factor=0.0, run_factor=0.0, job_factor=1.0)

    def chosen(own: float | None, default: float) -> float:
        return default if own is None else own

    shared = queue.fairshare or queue.dominant_resources
    others = queue.fairshare_queues or queue.queue_group
    return ShareConf(
        shares=pairs(queue.fairshare) if shared else (("others", 1),),
        queues=tuple(name for name in others if name != queue.name),
        by_queue=bool(queue.dispatch_order),
        hist_hours=chosen(queue.hist_hours, params.hist_hours),
        cpu_factor=chosen(queue.cpu_time_factor, params.cpu_time_factor),
        run_factor=chosen(queue.run_time_factor, params.run_time_factor),
        job_factor=chosen(queue.run_job_factor, params.run_job_factor),
        gpu_factor=chosen(queue.gpu_run_time_factor, params.gpu_run_time_factor),
        committed_factor=chosen(queue.committed_run_time_factor, params.committed_run_time_factor),
        hist_run=bool(chosen(queue.enable_hist_run_time, params.enable_hist_run_time)),
        hist_gpu=bool(chosen(queue.enable_gpu_hist_run_time, params.enable_gpu_hist_run_time)),
        run_decay=bool(chosen(queue.run_time_decay, params.run_time_decay)),
        dominant=queue.dominant_resources,
    )


def aps_conf(queue: QueueConfig) -> ApsConf | None:
    """APS_PRIORITY."""
    aps = queue.aps_priority
    return None if aps is None else ApsConf(weights=aps.weights, limits=aps.limits, graces=aps.graces)


def partitions(config: ClusterConfig) -> tuple[PartitionConf, ...]:
    """Host partitions, with the factors of lsb.params."""
    params = config.params
    factors = ShareConf(
        hist_hours=params.hist_hours,
        cpu_factor=params.cpu_time_factor,
        run_factor=params.run_time_factor,
        job_factor=params.run_job_factor,
        gpu_factor=params.gpu_run_time_factor,
        by_queue=True,
        committed_factor=params.committed_run_time_factor,
        hist_run=params.enable_hist_run_time,
        hist_gpu=params.enable_gpu_hist_run_time,
        run_decay=params.run_time_decay,
    )
    return tuple(
        PartitionConf(name=part.name, hosts=part.hosts, share=_with_shares(factors, pairs(part.shares)))
        for part in config.partitions
    )


def _with_shares(factors: ShareConf, shares: Shares) -> ShareConf:
    return replace(factors, shares=shares)

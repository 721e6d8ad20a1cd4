"""The configuration in force: what queues leave open is filled in from lsb.params, amounts are in one unit, groups in full."""

from __future__ import annotations

import fnmatch
from typing import Any

from msgspec.structs import replace

from config.model.cluster import ClusterConfig, HostConfig, ResourceConfig
from config.model.container import OF_DOCKER
from config.model.params import Params as FileParams
from config.model.queue import ApplicationConfig, JobProfile, QueueConfig
from config.model.site_params import SiteParams
from config.model.values import FairShare
from lavad.core.lang.gpureq import parse, show
from lavad.core.lang.resreq.text import ResReqError, in_mb, merge
from lavad.core.site.conf import Conf, Params, PartitionConf, ResourceConf, UnitConf

FACTORS = (
    "hist_hours",
    "cpu_time_factor",
    "run_time_factor",
    "run_job_factor",
    "gpu_run_time_factor",
    "committed_run_time_factor",
    "enable_hist_run_time",
    "enable_gpu_hist_run_time",
    "run_time_decay",
)
"""Parameters of fair share that a queue has of its own or from lsb.params."""
FILLED = (
    "max_job_requeue",
    "local_max_preexec_retry",
    "local_max_preexec_retry_action",
    "preempt_delay",
    "no_preempt_interval",
    "no_preempt_run_time",
    "no_preempt_finish_time",
    "max_job_preempt",
    "max_total_time_preempt",
    "estimated_runtime",
)
"""Other parameters of queues that lsb.params has a default for."""
_OWN_SHARE = (*FACTORS, "fairshare_queues", "queue_group", "dispatch_order", "round_robin_policy", "dominant_resources")
"""Parameters that have become the policy of a queue in force."""


DOCKER = "docker"
SIZES = frozenset(("mem", "swp", "tmp"))
"""Resources whose amounts are sizes, in the unit of LSF_UNIT_FOR_LIMITS in the files."""

_NOTHING = QueueConfig("")


def resolve(config: ClusterConfig) -> Conf:
    """What the files say, made into what is decided with."""
    has_docker = any(resource.name == DOCKER and resource.type == "Boolean" for resource in config.resources)
    return Conf(
        cluster=config.name,
        admins=config.admins,
        params=_with_groups(_params(config), config),
        queues=tuple(_queue(queue, config.params, has_docker) for queue in config.queues),
        hosts=tuple(_host(host) for host in config.hosts),
        host_groups=(
            *((group.name, _members(config, group.members)) for group in config.host_groups),
            *((unit.name, unit.members) for unit in config.units),
        ),
        user_groups=tuple((group.name, group.members) for group in config.user_groups),
        group_shares=tuple((group.name, group.shares) for group in config.user_groups if group.shares),
        partitions=tuple(
            PartitionConf(
                part.name, part.hosts, FairShare(shares=part.shares, by_queue=True, **_filled(FACTORS, None, config.params))
            )
            for part in config.partitions
        ),
        users=tuple(config.users),
        resources=tuple(_resource(resource) for resource in config.resources),
        limits=config.limits,
        service_classes=config.service_classes,
        pools=config.pools,
        apps=tuple(_application(app, config.params, has_docker) for app in config.applications),
        models=tuple((model.name, model.cpu_factor) for model in config.host_models),
        site_params=config.lsb_params,
    )


def _filled(names: tuple[str, ...], own: QueueConfig | None, params: SiteParams) -> dict[str, Any]:
    """The queue's own values, those of lsb.params where it has none."""
    mine = {name: getattr(own, name, None) for name in names}
    return {name: getattr(params, name) if value in (None, "") else value for name, value in mine.items()}


def _queue(queue: QueueConfig, params: SiteParams, has_docker: bool) -> QueueConfig:
    unit = params.resreq_unit_mb
    return replace(
        queue,
        res_req=_requirement(queue, unit, has_docker),
        gpu_req=_gpus_in_mb(queue.gpu_req, unit),
        stop_cond=in_mb(queue.stop_cond, unit),
        resume_cond=in_mb(queue.resume_cond, unit),
        share=_share(queue, params),
        resrsv_limit=tuple(
            (name, least * unit, most * unit) if name in SIZES else (name, least, most)
            for name, least, most in queue.resrsv_limit
        ),
        scheduler="" if queue.scheduler in ("fcfs", "fair", "gang") else queue.scheduler,
        gang=queue.gang or queue.scheduler == "gang",
        **_filled(FILLED, queue, params),
        **{name: getattr(_NOTHING, name) for name in _OWN_SHARE},
    )


def _share(queue: QueueConfig, params: SiteParams) -> FairShare | None:
    """A queue's policy; None: first come, first served."""
    own_policy = queue.fairshare or queue.round_robin_policy or queue.dominant_resources or queue.queue_group
    if not (own_policy or queue.scheduler == "fair"):
        return None
    if queue.round_robin_policy or not own_policy:
        # everyone has the same share of the slots, and nothing but started slots counts
        turns = FairShare(shares=(("default", 1),), round_robin=True)
        return replace(turns, cpu_time_factor=0.0, run_time_factor=0.0, run_job_factor=1.0)
    others = queue.fairshare_queues or queue.queue_group
    has_shares = bool(queue.fairshare or queue.dominant_resources)
    return FairShare(
        shares=queue.fairshare if has_shares else (("others", 1),),
        of_group_alone=not has_shares,
        queues=tuple(name for name in others if name != queue.name),
        by_queue=bool(queue.dispatch_order),
        dominant_resources=queue.dominant_resources,
        **_filled(FACTORS, queue, params),
    )


def _application(app: ApplicationConfig, params: SiteParams, has_docker: bool) -> ApplicationConfig:
    unit = params.resreq_unit_mb
    return replace(app, res_req=_requirement(app, unit, has_docker), gpu_req=_gpus_in_mb(app.gpu_req, unit))


def _requirement(profile: JobProfile, unit_mb: float, has_docker: bool) -> str:
    """RES_REQ in MB; jobs in containers of docker go to hosts with the resource docker, where the site has one (as in LSF)."""
    needs_docker = has_docker and profile.container is not None and profile.container.kind in OF_DOCKER
    try:
        return merge([profile.res_req, *([f"select[{DOCKER}]"] if needs_docker else [])], unit_mb)
    except ResReqError:
        return profile.res_req


def _gpus_in_mb(text: str, unit_mb: float) -> str:
    """A GPU requirement with its gmem in MB; the files' reader has checked it."""
    return show(parse(text, unit_mb)) if "gmem" in text else text


def _host(host: HostConfig) -> HostConfig:
    runs = host.server and host.batch
    return replace(host, slots=host.slots if runs else 0, server=runs, batch=True)


def _resource(resource: ResourceConfig) -> ResourceConf:
    shared = tuple(
        (float(instance.value or 0), instance.hosts)
        for instance in resource.instances
        if not instance.per_host and _is_number(instance.value)
    )
    return ResourceConf(
        name=resource.name,
        kind=resource.type.lower(),
        increasing=resource.increasing is not False,
        interval=resource.interval or 0,
        consumable=resource.consumable,
        description=resource.description,
        locations=shared,
    )


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def _with_groups(params: Params, config: ClusterConfig) -> Params:
    """What other files than lsb.params and lsf.conf say for all jobs and hosts."""
    return replace(
        params,
        rusage_methods=config.rusage_methods,
        user_group_admins=tuple((group.name, _controlling(group.admins)) for group in config.user_groups if group.admins),
        host_group_admins=(
            *((group.name, group.admins) for group in config.host_groups if group.admins),
            *((unit.name, unit.admins) for unit in config.units if unit.admins),
        ),
        whole_groups=tuple(group.name for group in config.host_groups if group.members == ("all",)),
        time_windows=config.time_windows,
    )


def _members(config: ClusterConfig, words: tuple[str, ...]) -> tuple[str, ...]:
    """The members of a host group: `all`, patterns and what `~` takes away as the hosts of lsf.cluster have it."""
    if not any(word == "all" or word[:1] == "~" or set(word) & set("*?") for word in words):
        return words
    if "all" in words and not any(word[:1] == "~" for word in words):
        return ("all",)  # a host that joins later is one of them too
    groups = {group.name: group.members for group in config.host_groups}
    hosts = [host.name for host in config.hosts if host.server and host.batch]
    found: list[str] = []
    away: set[str] = set()
    for word in words:
        if word.startswith("~"):
            away.update(groups.get(word[1:], (word[1:],)))
        elif word == "all":
            found += hosts or [word]
        else:
            found += [word] if word in groups else fnmatch.filter(hosts, word) or [word]
    return tuple(name for name in dict.fromkeys(found or hosts) if name not in away)


def _controlling(admins: tuple[str, ...]) -> tuple[str, ...]:
    """`name`, `name[full]`; those with `[usershares]` may change shares only."""
    return tuple(word.partition("[")[0] for word in admins if "[usershares]" not in word)


def _params(config: ClusterConfig) -> Params:
    site = config.params
    params = Params(**{name: getattr(site, name) for name in FileParams.__struct_fields__})
    return replace(
        params,
        default_queue=config.default_queues(),
        lsb_gpu_req=_gpus_in_mb(site.lsb_gpu_req, site.resreq_unit_mb),
        open_hosts=config.default_host is not None,
        host_addresses=config.host_addresses,
        lava_admin_hosts=site.lava_admin_hosts or site.lsf_master_list,
        units=tuple(UnitConf(name=unit.name, type=unit.type) for unit in config.units),
        architectures=tuple((model.name, " ".join(model.architectures)) for model in config.host_models if model.architectures),
    )

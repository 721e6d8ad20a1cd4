"""The configuration as the core and the scheduler use it: queues, hosts, groups and parameters with defaults filled in.

Queues, profiles, hosts and limits are the records of ``config.model``; ``lavad.configure.resolve`` makes it. One ``Configured``
event carries the whole, so that replicas and a replay decide with the very same values.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from config.model.cluster import HostConfig, Limit, UserConfig
from config.model.guarantees import Pool, ServiceClass
from config.model.params import Params as FileParams
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.values import FairShare, Shares
from lavad.core.site.host_groups import HostGroups
from lavad.core.site.user_groups import UserGroups


class ResourceConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A resource of lsf.shared."""

    name: str
    kind: str = "boolean"
    """``boolean``, ``numeric`` or ``string``."""
    increasing: bool = True
    interval: int = 0
    consumable: bool = False
    description: str = ""
    locations: tuple[tuple[float, tuple[str, ...]], ...] = ()
    """Shared instances: amount and the hosts that share it."""


class UnitConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A compute unit: a rack, a switch …; its hosts are those of the host group of its name."""

    name: str
    type: str


class Params(FileParams, frozen=True, omit_defaults=True):
    """The parameters of lsb.params and lsf.conf, and what other files say for all jobs and hosts."""

    open_hosts: bool = False
    """Whether hosts that no file names may join."""
    host_addresses: tuple[str, ...] = ()
    """LSF_HOST_ADDR_RANGE: where those may join from; (): from anywhere."""
    rusage_methods: tuple[tuple[str, str], ...] = ()
    """ReservationUsage of lsb.resources: resource and what rusage[] of it is for: task, job or host."""
    user_group_admins: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """GROUP_ADMIN of lsb.users: they control the jobs of the group's members."""
    host_group_admins: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """GROUP_ADMIN and ADMINS of lsb.hosts: they open and close the group's hosts."""
    whole_groups: tuple[str, ...] = ()
    """Host groups whose members are all hosts: bmgroup says so instead of naming each."""
    time_windows: tuple[str, ...] = ()
    """When one of these opens or closes, the site's files say something else (``#if time(…)``)."""
    architectures: tuple[tuple[str, str], ...] = ()
    """Host model and the architectures that lsf.shared gives it."""
    units: tuple[UnitConf, ...] = ()
    """The ComputeUnit sections of lsb.hosts."""

    def rusage_per(self, name: str, own: str) -> str:
        """What an amount of rusage[] is for: what it says itself, else as its resource has it, "" for the default."""
        return own or dict(self.rusage_methods).get(name, "") or ("task" if self.resource_reserve_per_task else "")


class PartitionConf(msgspec.Struct, frozen=True, omit_defaults=True):
    """A HostPartition of lsb.hosts: one share tree for the jobs of all queues on its hosts."""

    name: str
    hosts: tuple[str, ...] = ()
    share: FairShare = FairShare()


class Conf(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """The whole configuration in force."""

    cluster: str = "lava"
    admins: tuple[str, ...] = ()
    params: Params = Params()
    queues: tuple[QueueConfig, ...] = (QueueConfig(name="normal", priority=30),)
    hosts: tuple[HostConfig, ...] = ()
    host_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    user_groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    group_shares: tuple[tuple[str, Shares], ...] = ()
    """User group to the shares of its members (USER_SHARES of lsb.users)."""
    partitions: tuple[PartitionConf, ...] = ()
    users: tuple[UserConfig, ...] = ()
    resources: tuple[ResourceConf, ...] = ()
    limits: tuple[Limit, ...] = ()
    service_classes: tuple[ServiceClass, ...] = ()
    pools: tuple[Pool, ...] = ()
    """What is guaranteed to the service classes."""
    apps: tuple[ApplicationConfig, ...] = ()
    models: tuple[tuple[str, float], ...] = ()
    """Model name and CPU factor."""
    site_params: tuple[tuple[str, str], ...] = ()
    """Names and values of lsb.params as written, for ``bparams``."""

    @cached_property
    def app_conf(self) -> dict[str, ApplicationConfig]:
        """Application profiles by name."""
        return {app.name: app for app in self.apps}

    @cached_property
    def groups_of_users(self) -> UserGroups:
        """The user groups, to be asked."""
        return UserGroups(self.user_groups)

    @cached_property
    def groups_of_hosts(self) -> HostGroups:
        """The host groups, to be asked."""
        return HostGroups(self.host_groups)

    @cached_property
    def model_factors(self) -> dict[str, float]:
        """Models to their CPU factors."""
        return dict(self.models)


class QueueAdmin(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What administrators did to a queue."""

    name: str
    open: bool = True
    active: bool = True
    by: str = ""
    comment: str = ""

"""CPU factors of hosts and models, and how long a run limit is on a host.

Rule: a run limit, or an estimated run time, is given for one host or model (``-W 10/hostA``; by default the submission host)
and is as much longer on another host as that one is slower, unless ABS_RUNLIMIT is set. Agents, listings and the scheduler
take it so.
"""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec


def factor_of(cluster: Cluster, name: str) -> float:
    """The CPU factor of a host or model; 1.0: it is not known."""
    return find_factor(cluster, name) or 1.0


def find_factor(cluster: Cluster, name: str) -> float | None:
    """The CPU factor of a host or model; None for a name that is neither, or a host that has not joined."""
    models = cluster.conf.model_factors
    if name in models:
        return models[name]
    conf = cluster.host_conf.get(name)
    if conf is not None and conf.model in models:
        return models[conf.model]
    host = cluster.hosts.rows.get(name)
    if host is None:
        return None
    return models.get(host.facts.model, host.facts.cpu_factor or 1.0)


def scale(cluster: Cluster, given_for: str, on: str) -> float:
    """The factor for a time limit given for one host or model on a host; 1.0 where one is not known."""
    return _ratio(find_factor(cluster, given_for), find_factor(cluster, on)) if given_for else 1.0


def _ratio(given: float | None, own: float | None) -> float:
    return given / own if given and own else 1.0


def scaled(seconds: int, factor: float) -> int:
    """Seconds of a limit multiplied by a factor: whole ones, at least one."""
    return max(1, round(seconds * factor))


def is_absolute(cluster: Cluster, spec: Spec) -> bool:
    """Whether a run limit (or estimate) of a job is as long on each host as given: ABS_RUNLIMIT of the site or its profile."""
    app = cluster.conf.app_conf.get(spec.app) if spec.app else None
    return cluster.conf.params.abs_runlimit or (app is not None and app.abs_runlimit)


def seconds_on(cluster: Cluster, spec: Spec, seconds: int, host: str) -> int:
    """How long a run limit (or estimate) of a job is on a host."""
    if is_absolute(cluster, spec):
        return seconds or 1
    return scaled(seconds, scale(cluster, _given_for(spec), host))


def longest_on(cluster: Cluster, spec: Spec, seconds: int, hosts: Iterable[str]) -> int:
    """How long it is on the slowest of some hosts."""
    return max((seconds_on(cluster, spec, seconds, host) for host in hosts), default=seconds)


def _given_for(spec: Spec) -> str:
    return spec.run_host or spec.from_host


_WHOLE = 1_000_000
"""Seconds of which a factor can be told."""


class RunTimes:
    """The same for many jobs: the factors of all hosts and models, as of one configuration and what hosts say of themselves.

    ``even``: a run limit is as long on each host as it was given, as ABS_RUNLIMIT is set or all factors are equal.
    """

    def __init__(self, cluster: Cluster) -> None:
        conf, hosts = cluster.conf, cluster.hosts.rows
        names = () if conf.params.abs_runlimit else (*conf.model_factors, *cluster.host_conf, *hosts)
        self.factors = {name: factor for name in names if (factor := find_factor(cluster, name))}
        self._absolute = frozenset(app.name for app in conf.apps if app.abs_runlimit)
        self.even = len(set(self.factors.values())) < 2
        self._fastest = max((self.factors[name] for name in hosts if name in self.factors), default=None)
        self._slowest = min((self.factors[name] for name in hosts if name in self.factors), default=None)

    def on(self, spec: Spec, seconds: int, host: str) -> int:
        """How long a run limit (or estimate) of a job is on a host."""
        return seconds or 1 if self.even else self._with(spec, seconds, self.factors.get(host))

    def normalized(self, spec: Spec, seconds: int) -> float:
        """How long it is on a host of CPU factor 1: of two jobs the one with less is the shorter on any host."""
        if not self.even and spec.app in self._absolute:
            return seconds * (self._slowest or 1.0)
        return float(seconds) if self.even else seconds * self.factors.get(_given_for(spec), 1.0)

    def actual(self, normalized: float, host: str) -> float:
        """How long such a normalized time is on a host."""
        return normalized if self.even else normalized / self.factors.get(host, 1.0)

    def longest(self, spec: Spec, seconds: int, hosts: Iterable[str]) -> int:
        """How long it is on the slowest of some hosts."""
        return seconds or 1 if self.even else max((self.on(spec, seconds, host) for host in hosts), default=seconds)

    def least(self, seconds: int) -> float:
        """The least that a limit of so many seconds can be on a host, whatever it is given for."""
        if self.even or self._fastest is None:
            return seconds
        return seconds * min(self.factors.values()) / self._fastest

    def given(self, spec: Spec, seconds: float, hosts: Iterable[str]) -> int:
        """The limit, as limits are given, that lasts for so long on the slowest of some hosts: whole seconds, at least one."""
        if self.even:
            return max(1, int(seconds))
        return max(1, int(seconds * _WHOLE / self.longest(spec, _WHOLE, hosts)))

    def bounds(self, spec: Spec, seconds: int) -> tuple[int, int]:
        """How long it is on the fastest and on the slowest host of the cluster."""
        if self.even:
            return seconds or 1, seconds or 1
        return self._with(spec, seconds, self._fastest), self._with(spec, seconds, self._slowest)

    def _with(self, spec: Spec, seconds: int, factor: float | None) -> int:
        if spec.app in self._absolute:
            return seconds or 1
        return scaled(seconds, _ratio(self.factors.get(_given_for(spec)), factor))

"""Whom an agent may vouch for, and whether its host belongs to the cluster.

A host vouches by user name, so whoever is root there can be any user whom it may vouch for. Rule: it vouches for everybody only
where it is declared as a submission host, elsewhere for users who have a live job on it; on a host that is not an administration
host nobody is an administrator, and root can only look. A master need not be a host of the cluster: administrators are heard
wherever they have their rights, and on the master's own socket its kernel says who asks, so nobody has to be believed. A token
would live on after the job for which a host was believed, so only the others get one.
"""

from __future__ import annotations

from collections.abc import Iterable

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.asks import Ask, Caller, Query
from lavad.core.lang.token_ask import Token
from lavad.core.site.conf import Conf
from lavad.core.site.rights import is_admin


def is_member(cluster: Cluster, host: str) -> bool:
    """Whether the cluster's files name the host, or let hosts join that they do not name."""
    return host in cluster.host_conf or not cluster.host_conf or cluster.conf.params.open_hosts


def has_jobs(cluster: Cluster, host: str) -> bool:
    """Whether an attempt of a job has a part on the host."""
    use = cluster.use.hosts.get(host)
    return use is not None and bool(use.jobs)


def is_admin_host(conf: Conf, master: str, host: str) -> bool:
    """Whether administrators act from this host: ``master``, where this master runs, and LAVA_ADMIN_HOSTS."""
    named = conf.params.lava_admin_hosts
    return host == master or "all" in named or any(_is_same(host, name) for name in named)


def _is_same(host: str, name: str) -> bool:
    """Whether two names are of one host; one of them may lack the domain."""
    short = "." not in host or "." not in name
    return host == name or (short and host.partition(".")[0] == name.partition(".")[0])


def why_not_vouched(cluster: Cluster, ask: Ask, caller: Caller) -> str:
    """Why an ask of this caller is not taken from their host; "": it is."""
    if not caller.may_administer and (caller.uid == 0 or caller.user == "root") and not isinstance(ask, Query):
        return f"{caller.host}: root is not heard from this host (LAVA_ADMIN_HOSTS)"
    if _is_submission_host(cluster, caller) or is_admin(cluster.conf, caller):
        return ""
    if caller.user in _users_of(cluster, caller.host) and not isinstance(ask, Token):
        return ""
    return f"{caller.host}: Host is not a submission host"


def _is_submission_host(cluster: Cluster, caller: Caller) -> bool:
    named, host = cluster.conf.params.lava_submit_hosts, caller.host
    declared = caller.local or host in cluster.host_conf or not cluster.host_conf
    return host in named or ("all" in named and declared)


def _users_of(cluster: Cluster, host: str) -> Iterable[str]:
    """The owners of jobs that have a part on the host."""
    use = cluster.use.hosts.get(host)
    return {cluster.spec_of(key).user for key in use.jobs} if use is not None else ()

"""What a select expression may name of a host, as far as it does not depend on what runs there or on its load."""

from __future__ import annotations

from math import inf

from lavad.core.cluster.cluster import Cluster
from lavad.core.lang.resreq.eval import Value, value_of
from lavad.core.lang.resreq.text import FOUND


def type_of(cluster: Cluster, host: str) -> str:
    """A host's type, by configuration or by its agent."""
    conf = cluster.host_conf.get(host)
    return (conf.type if conf is not None else "") or cluster.hosts.rows[host].facts.type


def topology_of(cluster: Cluster, host: str) -> str:
    """The processors of a host as ``core.lang.topology`` reads them; "" where affinity is off or they are not known."""
    conf, known = cluster.host_conf.get(host), cluster.hosts.rows.get(host)
    return known.facts.topology if known is not None and (conf is None or conf.affinity) else ""


def own_resources(cluster: Cluster, host: str) -> tuple[tuple[str, str], ...]:
    """A host's static resources: of lsf.cluster, then those that it says it has (LSF_LOCAL_RESOURCES) and lsf.cluster does not.

    As in LSF, lsf.shared has to define what a host says of itself. Boolean ones are ("name", ""), or ("!name", "").
    """
    conf, seen = cluster.host_conf.get(host), cluster.hosts.rows.get(host)
    given = conf.resources if conf is not None else ()
    if seen is None or not seen.facts.local:
        return given
    known = {resource.name for resource in cluster.conf.resources if not resource.locations}
    known -= {name.lstrip("!") for name, _ in given}
    return (*given, *(pair for pair in seen.facts.local if pair[0] in known))


def own_resource(cluster: Cluster, host: str, name: str) -> str | None:
    """The value of one of these; None: the host has it not. Asked for often, where the names of all would be too many."""
    conf, seen = cluster.host_conf.get(host), cluster.hosts.rows.get(host)
    for own, value in conf.resources if conf is not None else ():
        if own.lstrip("!") == name:
            return value
    for own, value in seen.facts.local if seen is not None else ():
        if own == name:
            defined = any(resource.name == name and not resource.locations for resource in cluster.conf.resources)
            return value if defined else None
    return None


def static_values(cluster: Cluster, host: str) -> dict[str, Value]:
    """The values of a host that has been seen; memory, swap and disk in MB."""
    facts = cluster.hosts.rows[host].facts
    conf = cluster.host_conf.get(host)
    model = (conf.model if conf is not None else "") or facts.model
    gpus = sum(1 for gpu in facts.gpus if not gpu.parent)
    values: dict[str, Value] = {
        "ncpus": facts.ncpus,
        "nprocs": facts.nprocs,
        "ncores": facts.ncores or facts.ncpus,
        "nthreads": facts.nthreads,
        "maxmem": facts.max_mem,
        "maxswp": facts.max_swap,
        "maxtmp": facts.max_tmp,
        "ngpus": gpus,
        "ngpus_physical": gpus,
        "type": type_of(cluster, host),
        "model": model,
        "cpuf": cluster.conf.model_factors.get(model, facts.cpu_factor),
        "hname": host,
        "server": True,
        "status": "ok",
        "healthy": True,
        "maxslots": cluster.slots_of(host),
        "rexpri": 0.0,
        "ndisks": 0.0,
    }
    values |= {name: name in facts.resources for name in FOUND}
    values |= {name: value_of(text) for name, text in own_resources(cluster, host)}
    return values


def idle_values(cluster: Cluster, host: str) -> dict[str, Value]:
    """The values of a host on which nothing runs, whatever does: for what is decided of it as a whole."""
    values, most = static_values(cluster, host), cluster.slots_of(host)
    many = inf if most < 0 else most
    return values | {"mem": values["maxmem"], "swp": values["maxswp"], "tmp": values["maxtmp"], "slots": many, "maxslots": many}

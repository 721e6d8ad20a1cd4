"""What bhosts, lshosts and lsload say about a host: its status, slots, resources and load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from config.model.cluster import HostConfig
from lavad.core.job.chunk import slots_in
from lavad.core.lang.asks import Refused
from lavad.core.lang.resreq import text as resreq
from lavad.core.lang.resreq.eval import Value, compile_select, value_of
from lavad.core.lang.states import SUSPENDED, HostState
from lavad.core.lang.windows import WindowError, is_open, parse_windows
from lavad.core.rules.host_values import own_resources
from lavad.core.site.host import Host
from lavad.queries.facts.jobfacts import cpu_factor
from lavad.queries.frame import formats
from lavad.queries.frame.request import Request
from lavad.queries.frame.view import View

UNKNOWN = "Bad host name, host group name or cluster name"


def all_hosts(view: View) -> list[str]:
    """Names of all hosts: as configured, then those that joined."""
    return list(dict.fromkeys([*view.cluster.host_conf, *view.cluster.hosts.rows]))


def conf_of(view: View, name: str) -> HostConfig:
    """A host's configuration; the defaults if it has none."""
    return view.cluster.host_conf.get(name) or HostConfig(name=name)


def host_of(view: View, name: str) -> Host:
    """A host's record; an empty one for a host that never joined."""
    return view.cluster.hosts.rows.get(name) or Host(name=name)


def without_groups(view: View, words: Iterable[str]) -> list[str]:
    """The words with the hosts of a group in the place of its name."""
    groups = view.cluster.conf.groups_of_hosts.members
    found: dict[str, None] = {}
    for word in words:
        hosts = view.cluster.conf.groups_of_hosts.hosts(word) if word in groups else (word,)
        found.update(dict.fromkeys(all_hosts(view) if "all" in hosts and word in groups else hosts))
    return list(found)


def named(request: Request, words: Sequence[str]) -> list[str]:
    """The hosts that the words name, with groups expanded; all hosts for no words. Raises Refused for an unknown name."""
    view = request.view
    known = all_hosts(view)
    groups = view.cluster.conf.groups_of_hosts.members
    found: dict[str, None] = {}
    for word in words:
        if word in ("all", view.name):
            found.update(dict.fromkeys(known))
        elif word in groups:
            hosts = view.cluster.conf.groups_of_hosts.hosts(word)
            found.update(dict.fromkeys(known if "all" in hosts else hosts))
        elif word in known:
            found[word] = None
        else:
            raise Refused(f"{word}: {UNKNOWN}")
    return list(found) if words else known


class Slots:
    """Job slots of a host by state."""

    def __init__(self, view: View, name: str) -> None:
        use = view.cluster.use.hosts.get(name)
        counts: Counter[str] = Counter()
        jobs = view.cluster.jobs.rows
        for key, part in use.jobs.items() if use is not None else ():
            job = jobs.get(key)
            counts[job.state.name if job is not None else "RUN"] += part.slots
            if not part.slots and job is not None and job.state in SUSPENDED:  # of a chunk: its slot is with one that waits
                counts[job.state.name] += slots_in(part)
                counts["RUN"] -= slots_in(part)
        self.ssusp, self.ususp = counts["SSUSP"], counts["USUSP"]
        self.run = counts["RUN"] + counts["WAIT"] + counts["UNKWN"] + counts["ZOMBI"]
        self.rsv = sum(part.slots for part in use.held.values()) if use is not None else 0
        self.rsv += view.held_slots.hosts[name]
        self.all = self.run + self.ssusp + self.ususp
        self.max = view.cluster.slots_of(name)
        self.exclusive = use is not None and use.exclusive > 0


def status(view: View, name: str, now: float, slots: Slots) -> str:
    """``ok``, ``unavail``, ``unreach`` or ``closed_…``."""
    host = host_of(view, name)
    if host.state is not HostState.OK:
        return "unreach" if host.state is HostState.UNREACH else "unavail"
    if host.closed:
        return "closed_Adm"
    if slots.exclusive:
        return "closed_Excl"
    conf = conf_of(view, name)
    if not _window_open(conf.dispatch_window, now):
        return "closed_Wind"
    if 0 <= slots.max <= slots.all:
        return "closed_Full"
    return "closed_Busy" if busy_indices(view, name) else "ok"


def limit(value: int | None) -> str:
    """A limit in a column; ``-`` for none."""
    return "-" if value is None or value < 0 else str(value)


def _window_open(text: str, now: float) -> bool:
    try:
        return not text or is_open(parse_windows(text), formats.week_second(now))
    except WindowError:
        return True


def busy_indices(view: View, name: str) -> list[str]:
    """Load indices beyond the host's dispatch thresholds."""
    load = view.soft.load.get(name, {})
    resources = {resource.name: resource.increasing for resource in view.cluster.conf.resources}
    found = []
    for index, limit in conf_of(view, name).thresholds.sched:
        value = load.get(index)
        up = resources.get(index, index not in ("it", "tmp", "swp", "mem"))
        if value is not None and (value > limit if up else value < limit):
            found.append(index)
    return found


def type_of(view: View, name: str) -> str:
    """The host type: as configured, else as its agent reports it."""
    return conf_of(view, name).type or host_of(view, name).facts.type


def model_of(view: View, name: str) -> str:
    """The host model: as configured, else as its agent reports it."""
    return conf_of(view, name).model or host_of(view, name).facts.model


def booleans(view: View, name: str) -> list[str]:
    """Boolean resources (and others, ``name=value``) of the host, in the order of lsf.shared."""
    place = view.places_of_resources
    own = sorted(own_resources(view.cluster, name), key=lambda pair: place.get(pair[0].lstrip("!"), len(place)))
    found = [key for key in resreq.FOUND if key in host_of(view, name).facts.resources and key not in dict(own)]
    return [*(key if not value else f"{key}={value}" for key, value in own), *found]


class SharedInstance(NamedTuple):
    """An instance of a shared resource: its amount, the hosts that share it, and how much of it the jobs there reserve."""

    resource: str
    amount: float
    hosts: tuple[str, ...]
    reserved: float


def shared_instances(view: View) -> list[SharedInstance]:
    """All, in the order of lsf.shared, with ``all`` expanded."""
    uses, found = view.cluster.use.hosts, []
    for resource in view.cluster.conf.resources:
        for amount, named in resource.locations:
            hosts = tuple(all_hosts(view)) if "all" in named else named
            reserved = sum(uses[host].reserved.get(resource.name, 0.0) for host in hosts if host in uses)
            found.append(SharedInstance(resource.name, amount, hosts, reserved))
    return found


def shared_by_host(view: View) -> dict[str, list[SharedInstance]]:
    """Host to the instances that it may use: for a listing of many, each of which may share one with all."""
    found: dict[str, list[SharedInstance]] = {}
    for one in shared_instances(view):
        for host in dict.fromkeys(one.hosts):
            found.setdefault(host, []).append(one)
    return found


def values(view: View, name: str, factor: float, shared: Iterable[SharedInstance]) -> dict[str, Value]:
    """What a resource requirement may ask about the host. ``shared``: what it may use of ``shared_by_host``."""
    facts = host_of(view, name).facts
    found: dict[str, Value] = dict(view.soft.load.get(name, {}))
    slots = Slots(view, name)
    found |= {
        "hname": name,
        "type": type_of(view, name),
        "model": model_of(view, name),
        "cpuf": factor,
        "ncpus": float(facts.ncpus),
        "maxmem": float(facts.max_mem),
        "maxswp": float(facts.max_swap),
        "maxtmp": float(facts.max_tmp),
        "ndisks": 0.0,
        "server": conf_of(view, name).server,
        "slots": float(max(slots.max - slots.all, 0)),
        "maxslots": float(slots.max),
        "status": "ok" if host_of(view, name).state is HostState.OK else "unavail",
    }
    found |= gpu_counts(view, name)
    found |= {key: key in facts.resources for key in resreq.FOUND}
    for key, value in own_resources(view.cluster, name):
        found[key] = value_of(value)
    for one in shared:
        found.setdefault(one.resource, one.amount)
    return found


def gpu_counts(view: View, name: str) -> dict[str, float]:
    """LSF's counts of a host's GPUs, by compute mode; MIG instances are none."""
    states = view.soft.gpus.get(name, {})
    gpus = [gpu.uuid for gpu in host_of(view, name).facts.gpus if not gpu.parent]
    modes = Counter(state.mode if (state := states.get(uuid)) is not None else "" for uuid in gpus)
    excluded = modes["EXCLUSIVE_PROCESS"] + modes["EXCLUSIVE_THREAD"]
    return {
        "ngpus": float(len(gpus)),
        "ngpus_shared": float(len(gpus) - excluded - modes["PROHIBITED"]),
        "ngpus_excl_p": float(excluded),
        "ngpus_prohibited": float(modes["PROHIBITED"]),
        "ngpus_physical": float(len(gpus)),
    }


def fitting(request: Request, names: list[str], text: str) -> list[str]:
    """The hosts that a ``-R`` selects; raises Refused."""
    view = request.view
    try:
        req = resreq.parse(text)
    except resreq.ResReqError as error:
        raise Refused(str(error)) from None
    known = resreq.BUILT_IN | {resource.name for resource in view.cluster.conf.resources}
    if resreq.unknown_names(req, known):
        command = request.query.command
        raise Refused(f"{command}: Unknown resource name", 246 if command == "lsload" else 255)
    test, shared = compile_select(req.select), shared_by_host(view)
    return [name for name in names if test(values(view, name, cpu_factor(view, name), shared.get(name, ())))]

"""A folder of LSF's files -> one ClusterConfig and the list of what is wrong with it.

Rule: never raises for what a folder holds. A folder that is empty or missing is a cluster `lava` with the queue
`normal`, where every host may join.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Set

import msgspec

from config.check import check_groups, check_leases, check_limits, check_queues, check_shares
from config.model.cluster import DEFAULT_CLUSTER, ClusterConfig, GroupConfig, HostConfig
from config.model.problems import Place, Problem, Problems
from config.model.queue import ApplicationConfig, QueueConfig
from config.model.site_params import SiteParams
from config.model.values import INDEX_ALIASES, LOAD_INDICES
from config.read.guarantees import check_guarantees, read_guarantees
from config.read.hosts import (
    Members,
    check_batch_hosts,
    check_hosts_named,
    joined,
    members_of,
    read_lsb_hosts,
    read_units,
)
from config.read.limits import read_limits, read_methods, reservable
from config.read.params import Places, params_as_written, params_of, read_lsb_params, read_lsf_text
from config.read.queues import (
    NORMAL,
    read_applications,
    read_queues,
    with_cores,
)
from config.read.requirements import Grammar, check_requirements
from config.read.shared import Cluster, Shared, read_cluster, read_shared
from config.read.users import read_lsb_users
from config.text.lines import Reading
from config.text.sections import Row, Section, read_sections
from config.values import values as v
from config.values.fields import Fields, shortened
from config.values.names import base_host

LARGEST_FILE = 64 * 1024 * 1024
FILES = ("lsb.params", "lsb.queues", "lsb.hosts", "lsb.users", "lsb.resources", "lsb.applications", "lsb.serviceclasses")
_CLUSTER_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
NOT_READ = ("lsb.globalpolicies", "lsb.reasons", "lsb.threshold", "lsb.nqsmaps")


class Loaded(msgspec.Struct, frozen=True):
    config: ClusterConfig
    problems: tuple[Problem, ...]
    unanswered: tuple[str, ...] = ()
    """Groups whose members egroup should have said."""

    @property
    def has_errors(self) -> bool:
        return any(problem.fatal for problem in self.problems)

    @property
    def has_warnings(self) -> bool:
        return any(not problem.note for problem in self.problems)


class Folders(msgspec.Struct, frozen=True):
    """Where the lsf.* and the lsb.* files of one cluster lie."""

    cluster: str
    lsf: str
    lsb: str


class _LsfConf(msgspec.Struct, frozen=True):
    """lsf.conf as it stands, the fields of SiteParams that it sets, where, and the unit of sizes."""

    lsf: dict[str, str]
    fields: Fields
    places: Places
    scope: v.Scope


def load(
    confdir: str,
    minute: int | None = None,
    egroup_in: Callable[[str], Members] | None = None,
    grammar: Grammar | None = None,
) -> Loaded:
    """A folder that holds lsf.conf. ``minute``: of the week, for what the files say by time; None: now.

    ``egroup_in``: the site's program in LSF_SERVERDIR, which may take long to answer; without it groups whose members it says
    have none. ``grammar``: of resource requirements, which are not read without it.
    """
    problems = Problems()
    reading = Reading(problems, lambda path: _text(path, problems) if os.path.exists(path) else None, _minute(minute))
    conf_path = os.path.join(confdir, "lsf.conf")
    lsf, fields, places = read_lsf_text(_text(conf_path, problems), conf_path, problems)
    scope = v.Scope(unit=str(fields.get("lsf_unit_for_limits", "K"))[0])
    lsf_dir = _confdir_of(confdir, lsf, places, problems)
    shared = read_shared(_sections(os.path.join(lsf_dir, "lsf.shared"), reading), scope, problems)
    name = cluster_name(lsf_dir, shared.clusters, problems)
    cluster = read_cluster(_sections(os.path.join(lsf_dir, f"lsf.cluster.{name}"), reading), shared, problems)
    folders = Folders(name, lsf_dir, lsb_folder(confdir, lsf_dir, name, lsf))
    egroup = egroup_in(lsf.get("LSF_SERVERDIR", "")) if egroup_in else None
    sections = {file: _sections(os.path.join(folders.lsb, file), reading) for file in FILES}
    _report_files_not_read(folders, reading)
    config = _assembled(folders, _LsfConf(lsf, fields, places, scope), shared, cluster, sections, egroup, problems)
    if grammar:
        check_requirements(sections, grammar, problems)
    config = msgspec.structs.replace(config, time_windows=tuple(reading.windows))
    return Loaded(config, problems.all(), tuple(egroup.failed) if egroup else ())


def cluster_name(lsf_dir: str, named: tuple[str, ...], problems: Problems) -> str:
    """The cluster of lsf.shared that has an lsf.cluster file, else the one such file, else `lava`."""
    try:
        files = sorted(os.listdir(lsf_dir))
    except OSError:
        files = []
    good = [name for name in named if _CLUSTER_NAME.fullmatch(name)]
    there = [file[12:] for file in files if file.startswith("lsf.cluster.") and _CLUSTER_NAME.fullmatch(file[12:])]
    chosen = [name for name in good if name in there] or there or good
    if len(chosen) > 1:
        place = Place(os.path.join(lsf_dir, "lsf.shared"), 0)
        problems.warn(place, f"several clusters are configured ({', '.join(chosen[:9])}): {chosen[0]} is taken")
    return chosen[0] if chosen else DEFAULT_CLUSTER


def lsb_folder(confdir: str, lsf_dir: str, name: str, lsf: dict[str, str]) -> str:
    """LSB_CONFDIR/NAME/configdir, else the folder of lsf.conf if it holds lsb files, else lsbatch/NAME/configdir."""
    deep = os.path.join("lsbatch", name, "configdir")
    if lsf.get("LSB_CONFDIR"):
        named = os.path.join(lsf["LSB_CONFDIR"].replace("\0", ""), name, "configdir")
        if os.path.isdir(named):
            return named
    if any(os.path.exists(os.path.join(confdir, file)) for file in FILES):
        return confdir
    candidates = [os.path.join(base, deep) for base in (lsf_dir, confdir)]
    return next((path for path in candidates if os.path.isdir(path)), confdir)


def files_not_there(confdir: str, config: ClusterConfig) -> tuple[Problem, ...]:
    """A note for each file that may be missing, as others may, but hardly is on purpose."""
    problems = Problems()
    cluster = os.path.join(config.confdir, f"lsf.cluster.{config.name}")
    if not os.path.exists(cluster):
        text = "there is no such file: every host that the master can verify may join, and no user but root is an administrator"
        problems.note(Place(cluster, 0), text)
    queues = os.path.join(lsb_folder(confdir, config.confdir, config.name, config.lsf), "lsb.queues")
    if not os.path.exists(queues):
        problems.note(Place(queues, 0), f"there is no such file: the only queue is {NORMAL.name}")
    return problems.all()


def unknown_administrators(config: ClusterConfig, is_user: Callable[[str], bool]) -> tuple[Problem, ...]:
    """A note for each administrator of lsf.cluster whom the machine does not know: a name that is misspelt has no rights."""
    problems, groups = Problems(), {group.name for group in config.user_groups}
    for name in config.admins:
        if name.rstrip("/") not in groups and not is_user(name):
            text = f"administrator {name[:64]} is neither a user of this machine nor a user group"
            problems.note(Place(os.path.join(config.confdir, f"lsf.cluster.{config.name}"), 0), text)
    return problems.all()


def _confdir_of(confdir: str, lsf: dict[str, str], places: Places, problems: Problems) -> str:
    named = lsf.get("LSF_CONFDIR", "").replace("\0", "")
    if named and not os.path.isdir(named):
        text = f"LSF_CONFDIR {named[:200]} is not a folder: {confdir} is taken"
        problems.warn(places["LSF_CONFDIR"], text)
    return named if named and os.path.isdir(named) else confdir


def _assembled(
    folders: Folders,
    conf: _LsfConf,
    shared: Shared,
    cluster: Cluster,
    sections: dict[str, list[Section]],
    egroup: Members | None,
    problems: Problems,
) -> ClusterConfig:
    scope = conf.scope
    numeric = {name for name, resource in shared.resources.items() if resource.type == "Numeric"}
    indices = frozenset({*LOAD_INDICES, *numeric} - set(INDEX_ALIASES))

    fields = conf.fields | read_lsb_params(sections["lsb.params"], scope, problems)
    params = params_of(fields, conf.places, problems)
    queues, origins = read_queues(sections["lsb.queues"], scope, indices, problems)
    batch = read_lsb_hosts(sections["lsb.hosts"], scope, indices, problems, egroup)
    units = read_units(sections["lsb.hosts"], params.compute_unit_types, frozenset(batch.groups), problems)
    users = read_lsb_users(sections["lsb.users"], problems, egroup)
    applications = read_applications(sections["lsb.applications"], scope, problems)
    hosts, default_host = joined(cluster.hosts, cluster.open, batch, problems)
    limit_scope = v.Scope(unit=scope.unit if "lsf_unit_for_limits" in fields else "M")
    limits = read_limits(sections["lsb.resources"], limit_scope, problems)
    guarantees = read_guarantees(sections["lsb.serviceclasses"], sections["lsb.resources"], limit_scope, problems)

    queues = with_cores(queues or {NORMAL.name: NORMAL}, params)
    known_groups = frozenset(batch.groups) | {unit.name for unit in units}
    own_names = frozenset(host.name for host in hosts)
    lists = [(f"queue {name}", queues[name].hosts, _place(row, "HOSTS")) for name, row in origins.items()]
    check_hosts_named([*lists, *members_of(batch)] if default_host is None else [], own_names | known_groups, problems)
    check_batch_hosts(batch, own_names, users.groups, problems)
    _check_queues(queues, origins, hosts, users.groups, params, problems)
    names = own_names | known_groups if default_host is None else frozenset()
    specs = _host_specs(params, queues, origins, applications, sections)
    _check_host_specs(specs, names and {*own_names, *shared.models}, problems)
    countable = reservable(shared.resources.values())
    _check_params(params, queues, sections["lsb.params"], countable, problems)
    _check_vouching(params, own_names if default_host is None else frozenset(), conf.places, problems)
    check_limits(limits, queues, names, users.groups, countable, problems)
    taken = dict.fromkeys(users.groups, "a user group") | {part.name: "a host partition" for part in batch.partitions}
    check_guarantees(guarantees, queues, names, taken, problems)
    check_groups(users.groups, users.places, problems)
    return ClusterConfig(
        name=folders.cluster,
        admins=cluster.admins,
        params=params,
        queues=tuple(queues.values()),
        hosts=hosts,
        default_host=default_host, host_addresses=cluster.addresses, elim=cluster.elim,
        host_groups=tuple(batch.groups.values()),
        units=units, users=tuple(users.users.values()),
        user_groups=tuple(users.groups.values()), resources=tuple(shared.resources.values()),
        host_models=tuple(shared.models.values()),
        applications=applications,
        limits=tuple(limit for limit, _ in limits), rusage_methods=read_methods(sections["lsb.resources"], problems),
        service_classes=guarantees.classes, pools=guarantees.pools, partitions=batch.partitions,
        lsf=conf.lsf,
        lsb_params=params_as_written(sections["lsb.params"]),
        confdir=folders.lsf,
    )  # fmt: skip


def _check_params(
    params: SiteParams, queues: dict[str, QueueConfig], sections: list[Section], countable: frozenset[str], problems: Problems
) -> None:
    for row in (row for section in sections for row in section.rows):
        for name in params.default_queue if "DEFAULT_QUEUE" in row.cells else ():
            if name not in queues:
                problems.error(_place(row, "DEFAULT_QUEUE"), f"DEFAULT_QUEUE: no queue {name[:200]} in lsb.queues")
        for name in params.preemptable_resources if "PREEMPTABLE_RESOURCES" in row.cells else ():
            if name not in countable:
                place = _place(row, "PREEMPTABLE_RESOURCES")
                problems.error(place, f"PREEMPTABLE_RESOURCES: {name[:200]} is nothing that jobs reserve")


def _check_vouching(params: SiteParams, known: Set[str], places: Places, problems: Problems) -> None:
    """``known``: the hosts; none where any may join. Masters need not be among them, and LAVA_ADMIN_HOSTS may have no domains."""
    lists = (("LAVA_ADMIN_HOSTS", params.lava_admin_hosts), ("LAVA_SUBMIT_HOSTS", params.lava_submit_hosts))
    taken = {"all", *params.lsf_master_list, *known, *(host.partition(".")[0] for host in known)}
    for parameter, named in lists if known else ():
        for name in (name for name in named if not {name, name.partition(".")[0]} & taken):
            problems.warn(places[parameter], f"{parameter}: {shortened(name)} is not in lsf.cluster and has no effect")


def _host_specs(
    params: SiteParams,
    queues: dict[str, QueueConfig],
    origins: dict[str, Row],
    applications: tuple[ApplicationConfig, ...],
    sections: dict[str, list[Section]],
) -> list[tuple[str, str, Row]]:
    """What time limits are given for: whose they are, the host or model, and where it says so."""
    found = [("", params.default_host_spec, row) for row in _rows(sections, "lsb.params") if "DEFAULT_HOST_SPEC" in row.cells]
    found += [(f"queue {name}: ", queues[name].default_host_spec, row) for name, row in origins.items()]
    profiles = {app.name: app.default_host_spec for app in applications}
    for row in _rows(sections, "lsb.applications"):
        name = row.text("NAME")
        found.append((f"application {name}: ", profiles.pop(name, ""), row))
    return found


def _rows(sections: dict[str, list[Section]], file: str) -> Iterator[Row]:
    for section in sections[file]:
        yield from section.rows


def _check_host_specs(specs: list[tuple[str, str, Row]], known: Set[str], problems: Problems) -> None:
    """``known``: hosts and models; none where any host may join."""
    for owner, named, row in specs if known else ():
        if named and named not in known:
            text = f"{owner}{named[:200]} is no host and no model: times that are given for it are not scaled"
            problems.warn(_place(row, "DEFAULT_HOST_SPEC"), text)


def _check_queues(
    queues: dict[str, QueueConfig],
    origins: dict[str, Row],
    hosts: tuple[HostConfig, ...],
    groups: dict[str, GroupConfig],
    params: SiteParams,
    problems: Problems,
) -> None:
    def place(name: str, key: str) -> Place:
        return _place(origins[name], key) if name in origins else Place("", 0)

    _check_preemption(queues, origins, problems)
    check_shares(queues, groups, place, problems)
    check_queues(queues, hosts, place, problems)
    check_leases(queues, params, place, problems)


def _check_preemption(queues: dict[str, QueueConfig], origins: dict[str, Row], problems: Problems) -> None:
    for name, row in origins.items():
        preemption = queues[name].preemption
        for word, _ in preemption.preempts + preemption.preempted_by:
            if base_host(word) not in queues:
                problems.error(_place(row, "PREEMPTION"), f"queue {name}: PREEMPTION: no queue {base_host(word)[:200]}")


def _place(row: Row, name: str) -> Place:
    return row.cells[name].place if name in row.cells else row.place


def _report_files_not_read(folders: Folders, reading: Reading) -> None:
    for file in NOT_READ:
        path = os.path.join(folders.lsb, file)
        if os.path.exists(path):
            reading.problems.warn(Place(path, 0), f"{file} is not supported by lava and has no effect")
    path = os.path.join(folders.lsb, "lsb.modules")
    if os.path.exists(path):
        _report_modules(path, reading)


def _report_modules(path: str, reading: Reading) -> None:
    """lsb.modules stands in every cluster of LSF and names LSF's own parts; a site misses only what it has added."""
    problems = reading.problems
    problems.note(Place(path, 0), "lsb.modules is not needed by lava and has no effect: its scheduler is one part")
    for row in (row for section in _sections(path, reading) for row in section.rows):
        name = row.text("SCH_PLUGIN")
        if name and not name.startswith("schmod_"):
            instead = "SCHEDULER of a queue names a policy of the site"
            problems.warn(row.place, f"plug-in {shortened(name)} is not supported by lava and has no effect: {instead}")


def _minute(given: int | None) -> int:
    now = time.localtime()
    return (now.tm_wday + 1) % 7 * 1440 + now.tm_hour * 60 + now.tm_min if given is None else given


def _sections(path: str, reading: Reading) -> list[Section]:
    return read_sections(_text(path, reading.problems), path, reading)


def _text(path: str, problems: Problems) -> str:
    """The file's text; "" where there is no such file, or where it cannot be read (reported)."""
    if os.path.exists(path) and not os.path.isfile(path):
        problems.error(Place(path, 0), "cannot be read: it is not a regular file")
        return ""
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, ValueError) as wrong:
        reason = wrong.strerror if isinstance(wrong, OSError) else "the path cannot be"
        problems.error(Place(path, 0), f"cannot be read: {reason}")
        return ""
    if len(content) > LARGEST_FILE:
        problems.error(Place(path, 0), f"is larger than {LARGEST_FILE >> 20} MB")
        return ""
    return content.decode("utf-8-sig", errors="replace")

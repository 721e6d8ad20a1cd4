"""lsf.shared and lsf.cluster.NAME -> types, models, resources, administrators, hosts."""

import re
from collections.abc import Container

import msgspec
from msgspec.structs import replace

from config.model.cluster import ElimRules, HostConfig, HostModel, ResourceConfig, ResourceInstance
from config.model.problems import Place, Problems
from config.model.values import INDEX_ALIASES, LOAD_INDICES
from config.read.queues import name_is_good
from config.text.sections import Row, Section, bare, split_words
from config.values import values as v
from config.values.fields import Fields, Table, fill, report_unknown, shortened
from config.values.names import expand_all, host_names, parse_addresses

RESOURCE: Table = {
    "TYPE": v.choice("BOOLEAN", "NUMERIC", "STRING", "DYNAMIC"),
    "INTERVAL": v.second_count,
    "INCREASING": v.yes_no,
    "CONSUMABLE": v.yes_no,
    "RELEASE": v.yes_no,
    "DESCRIPTION": v.text,
}

_VALUE = r'("[^"]*"|[^\s@\[\]()"]+)'
_LOCATION = re.compile(rf'(?:{_VALUE}\s*@\s*)?\[([^\[\]]*)\]|(?:{_VALUE}@)?([^\s@\[\]()"]+)')


class Shared(msgspec.Struct):
    """What lsf.shared declares."""

    clusters: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    models: dict[str, HostModel] = {}
    resources: dict[str, ResourceConfig] = {}


class Cluster(msgspec.Struct):
    """What lsf.cluster.NAME declares. `open`: hosts that it does not list may join, from `addresses` if there are any."""

    admins: tuple[str, ...] = ()
    hosts: dict[str, HostConfig] = {}
    open: bool = True
    addresses: tuple[str, ...] = ()
    elim: ElimRules = ElimRules()


_COLUMNS = {
    "cluster": {"CLUSTERNAME", "SERVERS"},
    "hosttype": {"TYPENAME"},
    "hostmodel": {"MODELNAME", "CPUFACTOR", "ARCHITECTURE"},
    "clusteradmins": {"ADMINISTRATORS"},
    "resourcemap": {"RESOURCENAME", "LOCATION"},
}
"""Of the sections that name their columns alone; SERVERS is of LSF's MultiCluster."""


def _report_unknown_columns(section: Section, problems: Problems) -> None:
    """Each once, at the first row that has it: a table has the same columns in all its rows."""
    known = _COLUMNS.get(section.name.lower())
    if known is not None:
        cells = {key: cell for row in reversed(section.rows) for key, cell in row.cells.items() if key not in known}
        for cell in cells.values():
            report_unknown(cell, f"section {section.name}", problems)


def read_shared(sections: list[Section], scope: v.Scope, problems: Problems) -> Shared:
    shared = Shared()
    for section in sections:
        kind = section.name.lower()
        _report_unknown_columns(section, problems)
        for row in section.rows:
            if kind == "cluster":
                shared.clusters += tuple(row.text("CLUSTERNAME").split())
            elif kind == "hosttype":
                shared.types += tuple(row.text("TYPENAME").split())
            elif kind == "hostmodel":
                _add_model(shared, row, problems)
            elif kind == "resource":
                _add_resource(shared, row, scope, problems)
        if kind not in ("cluster", "hosttype", "hostmodel", "resource"):
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
    return shared


def _add_model(shared: Shared, row: Row, problems: Problems) -> None:
    name = row.text("MODELNAME")
    if not name_is_good(name, "host model", "MODELNAME", row.place, problems):
        return
    try:
        factor = v.real()(row.text("CPUFACTOR") or "1", v.Scope())
        assert isinstance(factor, float)
        if factor <= 0:
            raise ValueError("must be positive")
    except ValueError as wrong:
        problems.error(row.place, f"host model {name}: CPUFACTOR: {shortened(str(wrong))}")
        factor = 1.0
    architectures = tuple(row.text("ARCHITECTURE").split())
    shared.models[name] = HostModel(name=name, cpu_factor=factor, architectures=architectures)


def _add_resource(shared: Shared, row: Row, scope: v.Scope, problems: Problems) -> None:
    name = row.text("RESOURCENAME")
    if not name_is_good(name, "resource", "RESOURCENAME", row.place, problems):
        return
    if name in shared.resources:
        problems.error(row.place, f"resource {name} is defined twice; the first one holds")
        return
    if name in LOAD_INDICES or name in INDEX_ALIASES or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        problems.error(row.place, f"resource name '{name}' is a built-in index or not a name")
        return
    fields = fill(row, RESOURCE, scope, problems, f"resource {name}", {"RESOURCENAME"})
    fields["type"] = fields.get("type", "BOOLEAN").capitalize()
    shared.resources[name] = ResourceConfig(name=name, **fields)


ELIM: Table = {
    "ELIMARGS": v.words,
    "LSF_ELIM_BLOCKTIME": v.number(0),
    "LSF_ELIM_DEBUG": v.yes_no,
    "LSF_ELIM_RESTARTS": v.number(0),
}
_ELIM_FIELDS = {
    "elimargs": "args",
    "lsf_elim_blocktime": "block_time",
    "lsf_elim_debug": "debug",
    "lsf_elim_restarts": "restarts",
}


def read_cluster(sections: list[Section], shared: Shared, problems: Problems) -> Cluster:
    cluster = Cluster()
    for section in sections:
        kind = section.name.lower()
        _report_unknown_columns(section, problems)
        if kind == "parameters":
            _read_parameters(cluster, section, problems)
        elif kind == "clusteradmins":
            for row in section.rows:
                cluster.admins += tuple(row.text("ADMINISTRATORS").split())
        elif kind in ("host", "hosts"):
            _read_host_section(cluster, section, shared, problems)
        elif kind == "resourcemap":
            for row in section.rows:
                _map_resource(shared, row, problems)
        else:
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
    return cluster


def _read_parameters(cluster: Cluster, section: Section, problems: Problems) -> None:
    for row in section.rows:
        for key, cell in row.cells.items():
            if key == "LSF_HOST_ADDR_RANGE":
                _read_addresses(cluster, cell.value, row.place, problems)
            elif key not in ELIM:
                report_unknown(cell, "section Parameters", problems)
        of_elims = Row(row.place, {key: cell for key, cell in row.cells.items() if key in ELIM})
        found = fill(of_elims, ELIM, v.Scope(), problems, "section Parameters")
        cluster.elim = replace(cluster.elim, **{_ELIM_FIELDS[name]: value for name, value in found.items()})


def _read_addresses(cluster: Cluster, value: str, place: Place, problems: Problems) -> None:
    words = tuple(value.split())
    try:
        for word in words:
            parse_addresses(word)
    except ValueError as error:
        problems.error(place, f"LSF_HOST_ADDR_RANGE: {error}")
        return
    cluster.addresses, cluster.open = words, bool(words)


def _read_host_section(cluster: Cluster, section: Section, shared: Shared, problems: Problems) -> None:
    load_columns = {"R15S", "R1M", "R15M", "UT", "PG", "IO", "LS", "IT", "TMP", "SWP", "MEM", "ND"}
    cluster.open = bool(cluster.addresses) or (cluster.open and not section.rows)
    for row in section.rows:
        fields: Fields = {
            "model": _declared(row, "MODEL", shared.models, problems),
            "type": _declared(row, "TYPE", shared.types, problems),
            "server": _is_server(row, problems),
            "resources": tuple(
                (name, bare(value)) for name, _, value in (word.partition("=") for word in split_words(row.text("RESOURCES")))
            ),
        }
        for key, cell in row.cells.items():
            if key in load_columns and cell.value not in ("", "-"):
                problems.warn(section.place, f"column {cell.name} has no effect here: thresholds stand in lsb.hosts")
            elif key not in {"HOSTNAME", "MODEL", "TYPE", "SERVER", "RESOURCES", "RUNWINDOW", "REXPRI", *load_columns}:
                report_unknown(cell, "section Host", problems)
        fields |= fill(
            Row(row.place, {key: cell for key, cell in row.cells.items() if key in ("RUNWINDOW", "REXPRI")}),
            {"RUNWINDOW": v.window_list, "REXPRI": v.number(-20, 20)},
            v.Scope(),
            problems,
            "section Host",
        )
        fields["run_window"] = fields.pop("runwindow", "")
        fields.pop("rexpri", None)
        for name, value in fields["resources"]:
            if name.lstrip("!") not in shared.resources:
                word = f"{name}={value}" if value else name
                problems.warn(row.place, f"resource {shortened(word)} is not defined in lsf.shared")
        for name in host_names(row.text("HOSTNAME"), row.place, problems):
            if name in cluster.hosts:
                problems.error(row.place, f"host {name} is listed twice; the first line holds")
            cluster.hosts.setdefault(name, HostConfig(name=name, **fields))


def _declared(row: Row, column: str, known: Container[str], problems: Problems) -> str:
    """A model or type; `!` is "what the agent finds". One that lsf.shared does not name is a warning."""
    name = row.text(column)
    if name in ("", "!"):
        return ""
    if name not in known:
        problems.warn(row.place, f"host {column.lower()} {shortened(name)} is not defined in lsf.shared")
    return name


def _is_server(row: Row, problems: Problems) -> bool:
    try:
        return bool(v.yes_no(row.text("SERVER") or "1", v.Scope()))
    except ValueError as wrong:
        problems.error(row.place, f"column server: {shortened(str(wrong))}")
        return True


def _map_resource(shared: Shared, row: Row, problems: Problems) -> None:
    name, location = row.text("RESOURCENAME"), row.text("LOCATION")
    resource = shared.resources.get(name)
    if resource is None:
        problems.error(row.place, f"resource {shortened(name)} is not defined in lsf.shared")
        return
    instances: list[ResourceInstance] = []
    for match in _LOCATION.finditer(location):
        listed = match.group(2) if match.group(2) is not None else match.group(4)
        hosts = expand_all(tuple(listed.replace(",", " ").split()))
        text = match.group(1) or match.group(3)
        value = None if text is None else bare(text)
        if hosts == ("default",):
            instances.append(ResourceInstance(value=value, per_host=True))
        elif hosts:
            instances.append(ResourceInstance(value=value, hosts=hosts))
    if not instances or _LOCATION.sub("", location).strip():
        problems.error(row.place, f"resource {name}: LOCATION '{shortened(location)}' is not value@[host …]")
        return
    for instance in instances:
        if resource.type == "Numeric" and instance.value and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", instance.value):
            problems.error(row.place, f"resource {name}: '{shortened(instance.value)}' is not a number")
            return
    shared.resources[name] = msgspec.structs.replace(resource, instances=resource.instances + tuple(instances))

"""ComputeUnit sections of lsb.hosts: racks, switches, enclosures, as cu[] and `-m` use them."""

from config.model.cluster import UnitConfig
from config.model.problems import Place, Problems
from config.read.queues import name_is_good
from config.text.sections import Section
from config.values import values as v
from config.values.fields import Table, fill, shortened
from config.values.names import expand_all


def read_units(
    sections: list[Section], types: tuple[str, ...], groups: frozenset[str], problems: Problems
) -> tuple[UnitConfig, ...]:
    """The units in order of definition; `types` is COMPUTE_UNIT_TYPES, the finest first, `groups` are host groups."""
    table: Table = {"TYPE": v.text, "CONDENSE": v.yes_no, "ADMINS": v.words}
    order = [word.rstrip("!") for word in types]
    found: dict[str, UnitConfig] = {}
    places: dict[str, Place] = {}
    for row in [row for section in sections if section.name.lower() == "computeunit" for row in section.rows]:
        name = row.text("NAME")
        if not name_is_good(name, "compute unit", "NAME", row.place, problems):
            continue
        fields = fill(row, table, v.Scope(), problems, f"compute unit {name}", {"NAME", "MEMBER"})
        kind = fields.get("type", "")
        if name in found or name in groups:
            problems.error(row.place, f"compute unit {name} is defined twice; the first one holds")
        elif kind not in order:
            problems.error(row.place, f"compute unit {name}: type {shortened(kind) or '-'} is not in COMPUTE_UNIT_TYPES")
        else:
            members = expand_all(tuple(word.strip("()") for word in row.text("MEMBER").split() if word.strip("()")))
            found[name] = UnitConfig(name=name, type=kind, members=members, admins=fields.get("admins", ()))
            places[name] = row.place
    _check(found, places, order, problems)
    return tuple(found.values())


def _check(units: dict[str, UnitConfig], places: dict[str, Place], order: list[str], problems: Problems) -> None:
    """Each member is of the next finer type, and in one unit of a type only."""
    homes: dict[tuple[str, str], str] = {}
    for unit in units.values():
        level = order.index(unit.type)
        finer = order[level - 1] if level else ""
        for member in unit.members:
            home = homes.setdefault((unit.type, member), unit.name)
            if home != unit.name:
                problems.error(places[unit.name], f"compute unit {unit.name}: {shortened(member)} is in {home} already")
            inner = units.get(member)
            if (inner.type if inner is not None else "") != finer:
                what = f"a compute unit of type {finer}" if finer else "a host or host group"
                problems.error(places[unit.name], f"compute unit {unit.name}: {shortened(member)} is not {what}")

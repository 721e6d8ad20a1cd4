"""lsb.serviceclasses -> ServiceClass, GuaranteedResourcePool sections of lsb.resources -> Pool."""

import re
from collections.abc import Collection, Mapping

import msgspec

from config.model.guarantees import Amount, Loan, Pool, ServiceClass
from config.model.problems import Place, Problems
from config.read.goals import read_control_action, read_goals
from config.read.queues import name_is_good
from config.text.sections import Row, Section
from config.values import values as v
from config.values.fields import Fields, Table, fill, shortened
from config.values.names import host_words

_LISTS = ("QUEUES", "USERS", "FAIRSHARE_GROUPS", "APPS", "PROJECTS")
_WORD = re.compile(r"([A-Za-z_]+)\s*(?:\[([^\[\]]*)\])?\s*")
_AMOUNT = re.compile(r"([0-9]{1,9})\s*(%?)")
POOL_SECTION = "guaranteedresourcepool"


def access_control(value: str, _: v.Scope) -> Fields:
    """``QUEUES[a b] USERS[c] …`` as fields of a service class."""
    found: Fields = {}
    for name, inner in _keywords(value, _LISTS):
        words = tuple((inner or "").split())
        if not words:
            raise ValueError(f"{name}[] names nothing")
        found[name.lower()] = found.get(name.lower(), ()) + words
    return found


def _amount(text: str) -> Amount:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"'{text.strip()}' is no amount: a whole number, or a percentage as 20%")
    return Amount(int(match[1]), bool(match[2]))


def distribution(value: str, _: v.Scope) -> tuple[tuple[str, Amount], ...]:
    """``[class, 4] [class, 20%] …``"""
    found: dict[str, Amount] = {}
    pairs = re.findall(r"\[([^\[\],]*),([^\[\],]*)\]", value)
    if not pairs or re.sub(r"\[[^\[\]]*\]", "", value).strip(" ,\t()"):
        raise ValueError(f"'{value}' is not [service_class, amount] …")
    for name, amount in pairs:
        if name.strip() in found:
            raise ValueError(f"{name.strip()} stands twice")
        found[name.strip()] = _amount(amount)
    return tuple(found.items())


def loan_policies(value: str, _: v.Scope) -> Loan:
    """``QUEUES[all | name …] [DURATION[minutes]] [RETAIN[amount[%]]] [CLOSE_ON_DEMAND]``."""
    found: Fields = {}
    for name, inner in _keywords(value, ("QUEUES", "DURATION", "RETAIN", "CLOSE_ON_DEMAND")):
        text = (inner or "").strip()
        if name == "CLOSE_ON_DEMAND":
            found["close_on_demand"] = True
        elif name == "QUEUES":
            found["queues"] = tuple(word.removeprefix("!") for word in text.split())
        elif name == "RETAIN":
            found["retain"] = _amount(text)
        elif re.fullmatch(r"[0-9]{1,7}", text):
            found["duration"] = 60 * int(text)
        else:
            raise ValueError(f"DURATION[{text}] is not a number of minutes")
    if not found.get("queues"):
        raise ValueError("QUEUES[…] does not say whose jobs may borrow")
    return Loan(**found)


def _keywords(value: str, known: Collection[str]) -> list[tuple[str, str | None]]:
    """``NAME[inner] NAME …`` as pairs; ValueError for what is no such list, or another name."""
    found: list[tuple[str, str | None]] = []
    at = 0
    text = value.strip()
    while at < len(text):
        match = _WORD.match(text, at)
        if match is None or match[1].upper() not in known:
            raise ValueError(f"'{text[at : at + 40]}' is none of {', '.join(known)}")
        found.append((match[1].upper(), match[2]))
        at = match.end()
    return found


def pool_type(value: str, scope: v.Scope) -> Fields:
    """``slots``, ``hosts``, or ``package[slots=n:mem=amount]``; memory in MB unless LSF_UNIT_FOR_LIMITS says otherwise."""
    text = value.strip()
    if text.lower() in ("slots", "hosts"):
        return {"type": text.lower()}
    match = re.fullmatch(r"package\s*\[([^\[\]]*)\]", text, re.IGNORECASE)
    if match is None:
        raise ValueError(f"'{value}' is none of slots, hosts, package[slots=number:mem=amount]")
    found: Fields = {"type": "package", "slots": 0, "mem": 0.0}
    for part in match[1].split(":"):
        name, equals, amount = (piece.strip() for piece in part.partition("="))
        if not equals or name.lower() not in ("slots", "mem"):
            raise ValueError(f"'{part.strip()}' is none of slots=number, mem=amount")
        if name.lower() == "slots":
            found["slots"] = v.number(1)(amount, scope)
        else:
            found["mem"] = v.size(amount, scope) / 1024
    if not found["slots"] and not found["mem"]:
        raise ValueError("a package has slots or memory")
    return found


SERVICE_CLASS: Table = {
    "GOALS": read_goals,
    "PRIORITY": v.number(1, 2**31 - 1),
    "USER_GROUP": v.words,
    "CONTROL_ACTION": read_control_action,
    "ACCESS_CONTROL": access_control,
    "AUTO_ATTACH": v.yes_no,
    "DESCRIPTION": v.text,
}
_OF_GOALS = ("PRIORITY", "USER_GROUP", "CONTROL_ACTION")
"""What classes with goals in time alone may have (LSF), and what those with guarantees alone."""
_OF_GUARANTEES = ("ACCESS_CONTROL", "AUTO_ATTACH")
POOL: Table = {
    "TYPE": pool_type,
    "DISTRIBUTION": distribution,
    "HOSTS": host_words,
    "RES_SELECT": v.text,
    "SLOTS_PER_HOST": v.number(1),
    "LOAN_POLICIES": loan_policies,
    "DESCRIPTION": v.text,
}


class Guarantees(msgspec.Struct, frozen=True):
    """What both files say, in their order; ``places``: where each class and each pool stands."""

    classes: tuple[ServiceClass, ...]
    pools: tuple[Pool, ...]
    places: dict[tuple[str, str], Place]


def read_guarantees(classes: list[Section], resources: list[Section], scope: v.Scope, problems: Problems) -> Guarantees:
    """The sections of lsb.serviceclasses and of lsb.resources; ``scope``: of sizes in the latter."""
    found = _read_service_classes(classes, problems)
    with_guarantees = [name for name, (service, _) in found.items() if not service.goals]
    pools = _read_pools(resources, with_guarantees, scope, problems)
    places = {("class", name): place for name, (_, place) in found.items()}
    places |= {("pool", pool.name): place for pool, place in pools}
    return Guarantees(tuple(one for one, _ in found.values()), tuple(pool for pool, _ in pools), places)


def _read_service_classes(sections: list[Section], problems: Problems) -> dict[str, tuple[ServiceClass, Place]]:
    """The classes by name, in the order of the file, each with where it stands."""
    found: dict[str, tuple[ServiceClass, Place]] = {}
    for section in sections:
        if section.name.lower() != "serviceclass":
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
            continue
        for row in section.rows:
            name = row.text("NAME")
            if not name_is_good(name, "service class", "NAME", row.place, problems):
                continue
            owner = f"service class {name}"
            if name in found:
                problems.error(row.place, f"{owner} is defined twice; the first one holds")
                continue
            fields = fill(row, SERVICE_CLASS, v.Scope(), problems, owner, {"NAME"})
            if "goals" not in fields:
                if not row.text("GOALS"):
                    problems.error(row.place, f"{owner} has no GOALS")
                continue
            _leave_out_others(row, fields, owner, problems)
            fields |= fields.pop("access_control", {})
            if "control_action" in fields:
                fields["control_action"] = msgspec.structs.replace(fields["control_action"], file=row.place.file)
            if "user_group" in fields:
                fields["users"] = fields.pop("user_group")
            found[name] = ServiceClass(name=name, **fields), row.place
    return found


def _leave_out_others(row: Row, fields: Fields, owner: str, problems: Problems) -> None:
    """Leave out what the goals of a class do not go with (reported)."""
    kind, other = ("[GUARANTEE]", _OF_GOALS) if not fields["goals"] else ("goals in time", _OF_GUARANTEES)
    for name in other:
        if fields.pop(name.lower(), None) is not None:
            problems.error(row.cells[name].place, f"{owner}: {name} is not for a class with {kind}")


def _read_pools(
    sections: list[Section], classes: Collection[str], scope: v.Scope, problems: Problems
) -> tuple[tuple[Pool, Place], ...]:
    """The pools in the order of the file; what is guaranteed to a class that is not defined is left out (reported)."""
    found: dict[str, tuple[Pool, Place]] = {}
    for row in [row for section in sections if section.name.lower() == POOL_SECTION for row in section.rows]:
        name = row.text("NAME")
        if not name_is_good(name, "guaranteed resource pool", "NAME", row.place, problems):
            continue
        owner = f"guaranteed resource pool {name}"
        if name in found:
            problems.error(row.place, f"{owner} is defined twice; the first one holds")
            continue
        pool = _read_pool(row, name, owner, classes, scope, problems)
        if pool is not None:
            found[name] = pool, row.place
    return tuple(found.values())


def _read_pool(row: Row, name: str, owner: str, classes: Collection[str], scope: v.Scope, problems: Problems) -> Pool | None:
    fields = fill(row, POOL, scope, problems, owner, {"NAME"})
    for needed in ("TYPE", "DISTRIBUTION"):
        if not row.text(needed):
            problems.error(row.place, f"{owner} has no {needed}")
    if "type" not in fields or "distribution" not in fields:
        return None
    fields |= fields.pop("type")
    for one, _ in fields["distribution"]:
        if one not in classes:
            problems.error(
                row.cells["DISTRIBUTION"].place, f"{owner}: DISTRIBUTION: no service class {one[:200]} with [GUARANTEE]"
            )
    fields["distribution"] = tuple(pair for pair in fields["distribution"] if pair[0] in classes)
    if fields.get("slots_per_host") is not None and fields["type"] != "slots":
        text = f"{owner}: SLOTS_PER_HOST is for pools of slots: it has no effect"
        problems.warn(row.cells["SLOTS_PER_HOST"].place, text)
        fields.pop("slots_per_host")
    if "loan_policies" in fields:
        fields["loan"] = fields.pop("loan_policies")
    return Pool(name=name, **fields)


def check_guarantees(
    given: Guarantees, queues: Collection[str], known_hosts: Collection[str], taken: Mapping[str, str], problems: Problems
) -> None:
    """Names of queues and hosts (``known_hosts``: none where any host may join), and percentages beyond the whole.

    ``taken``: names that a class with goals must not have, with what has them.
    """
    for service in given.classes:
        if service.goals and service.name in taken:
            place = given.places["class", service.name]
            problems.error(place, f"service class {service.name}: {taken[service.name]} has this name")
        for queue in service.queues:
            if queue not in queues:
                place = given.places["class", service.name]
                problems.error(place, f"service class {service.name}: ACCESS_CONTROL: no queue {queue[:200]}")
    for pool in given.pools:
        place, owner = given.places["pool", pool.name], f"guaranteed resource pool {pool.name}"
        for host in pool.hosts if known_hosts else ():
            if host.lstrip("~") not in known_hosts and host != "all":
                problems.error(place, f"{owner}: HOSTS: unknown host or host group {host[:200]}")
        for queue in pool.loan.queues if pool.loan is not None else ():
            if queue not in queues and queue != "all":
                problems.error(place, f"{owner}: LOAN_POLICIES: no queue {queue[:200]}")
        if sum(amount.value for _, amount in pool.distribution if amount.percent) > 100:
            problems.warn(place, f"{owner}: DISTRIBUTION: more than 100% is guaranteed")

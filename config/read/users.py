"""lsb.users -> limits of users, user groups."""

import msgspec

from config.model.cluster import GroupConfig, UserConfig
from config.model.problems import Place, Problems
from config.read.hosts import Members, read_group
from config.read.queues import name_is_good
from config.text.sections import Row, Section
from config.values import values as v
from config.values.fields import Table, fill, shortened
from config.values.names import check_cycles

USER: Table = {
    "MAX_JOBS": v.number(0),
    "JL/P": v.real(),
    "MAX_PEND_JOBS": v.number(0),
    "MAX_PEND_SLOTS": v.number(0),
    "PRIORITY": v.number(0),
}


class Users(msgspec.Struct):
    users: dict[str, UserConfig] = {}
    groups: dict[str, GroupConfig] = {}
    places: dict[str, Place] = {}


def read_lsb_users(sections: list[Section], problems: Problems, egroup: Members | None = None) -> Users:
    found = Users()
    for section in sections:
        kind = section.name.lower()
        if kind == "user":
            for row in section.rows:
                _read_user(found, row, problems)
        elif kind == "usergroup":
            for row in section.rows:
                read_group(found.groups, found.places, row, "user group", problems, egroup)
        else:
            problems.warn(section.place, f"section {shortened(section.name)} is not supported and has no effect")
    members = {name: group.members for name, group in found.groups.items()}
    check_cycles(members, found.places, "user group", problems)
    return found


def _read_user(found: Users, row: Row, problems: Problems) -> None:
    name = row.text("USER_NAME")
    if not name_is_good(name.removesuffix("@"), "user", "USER_NAME", row.place, problems):
        return
    if name in found.users:
        problems.error(row.place, f"user {name} is listed twice; the first line holds")
        return
    fields = fill(row, USER, v.Scope(), problems, f"user {name}", {"USER_NAME"})
    fields.pop("priority", None)  # only checked
    if "jl_p" in fields:
        fields["slots_per_processor"] = fields.pop("jl_p")
    found.users[name] = UserConfig(name=name, **fields)

"""Parts found again after a restart of the agent: what its own notes say, to be matched with the starter's list."""

from __future__ import annotations

from agent.core import decide
from agent.core.part import Part
from agent.launch import build
from agent.launch.build import Compiled, Places
from agent.launch.site import Site
from agent.parts.entry import Entry
from agent.parts.spool import Saved
from proto import agent_pb2 as pb


def adopt(saved: dict[str, Saved], site: Site, now: float) -> dict[str, Entry]:
    """An entry for each part that the notes tell of. ``now``: CLOCK_BOOTTIME."""
    made: dict[bytes, Compiled] = {}
    found: dict[str, Entry] = {}
    for uid, one in saved.items():
        order = pb.Order.FromString(one.order)
        if one.user is None:
            continue
        if one.text not in made:
            made[one.text] = Compiled(pb.JobText.FromString(one.text), one.user, site)
        compiled = made[one.text]
        rules = build.rules_of(compiled.text, order.start, site)
        part = decide.resumed(one.part, now) if one.part else Part(uid, order.key, order.attempt, rules)
        where: Places = build.places(compiled.text, order.key, one.user, site)
        found[uid] = Entry(part, order, compiled, where, one.received)
    return found

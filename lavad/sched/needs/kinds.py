"""Kinds of classes: those whose jobs differ in one plain amount alone, as ``rusage[mem=…]``, share the reading of all else.

Rule: classes of one kind have equal specs but for that amount, so that whatever does not ask about it holds for all of them.
"""

from __future__ import annotations

import re

from msgspec.structs import astuple, replace

from lavad.core.cluster.cluster import Cluster
from lavad.core.job.spec import Spec
from lavad.sched.needs.needs import Need, read_need

KEPT = 4096
"""Kinds that are kept, at most."""
_ONE_AMOUNT = re.compile(r"rusage\[([a-z][a-z0-9_]*)=([1-9][0-9]{0,8})\]", re.ASCII)
_RESREQ = Spec.__struct_fields__.index("resreq")


class Kind:
    """What classes share that differ in one amount. ``need``: of the first of them; ``place``: its field with the amount."""

    __slots__ = ("name", "need", "place")

    def __init__(self, need: Need, place: str, name: str) -> None:
        self.need = need
        self.place = place
        self.name = name
        """The resource."""

    def of(self, number: int, spec: Spec, amount: float) -> Need:
        """The need of a class of this kind."""
        return replace(self.need, number=number, spec=spec, **{self.place: ((self.name, amount),)})


class Needs:
    """Needs by class."""

    def __init__(self) -> None:
        self._rows: dict[int, Need | None] = {}
        self._kinds: dict[tuple[object, ...], Kind | None] = {}
        """The values of a spec, with the resource for the requirement, to the kind; None: such classes are none."""

    def of(self, cluster: Cluster, number: int) -> Need | None:
        """The need of a class, read once; None: its queue is gone."""
        if number not in self._rows:
            found = self.kind_of(cluster, number)
            if found is None:
                self._rows[number] = read_need(cluster, number)
            else:
                kind, amount = found
                self._rows[number] = kind.of(number, cluster.specs.rows[number], amount)
        return self._rows[number]

    def kind_of(self, cluster: Cluster, number: int) -> tuple[Kind, float] | None:
        """The kind of a class, and its amount; None: it is one by itself."""
        spec = cluster.specs.rows[number]
        one = _ONE_AMOUNT.fullmatch(spec.resreq)
        if one is None or spec.roles:
            return None
        name, amount = one[1], float(one[2])
        values = astuple(spec)
        key = (*values[:_RESREQ], name, *values[_RESREQ + 1 :])
        try:
            kind = self._kinds[key]
        except KeyError:
            if len(self._kinds) >= KEPT:
                self._kinds.clear()
            need = read_need(cluster, number)
            kind = self._kinds[key] = _kind(need, name, amount) if need is not None else None
        return None if kind is None else (kind, amount)

    def forget(self, number: int) -> None:
        """A class has no pending job any more."""
        self._rows.pop(number, None)

    def clear(self) -> None:
        """Forget all: the configuration is another."""
        self._rows.clear()
        self._kinds.clear()


def _kind(need: Need, name: str, amount: float) -> Kind | None:
    """The kind of a class whose requirement is this amount; None: it reserves other things as well, or not just that amount."""
    places = [place for place in ("per_host", "per_slot", "shared") if getattr(need, place)]
    alone = need.is_plain and not need.decays and len(places) == 1 and getattr(need, places[0]) == ((name, amount),)
    return Kind(need, places[0], name) if alone else None

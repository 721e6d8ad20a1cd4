"""bwait: how a condition stands now. Nothing changes."""

from __future__ import annotations

import copy
from datetime import datetime

from lavad.core.cluster.cluster import Cluster
from lavad.core.cluster.versioned_table import Table
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.named import Known, resolve
from lavad.core.decide.depend.depend import local_of
from lavad.core.lang.asks import Caller, Judge
from lavad.core.rules.dependency_eval import evaluate


def judge(cluster: Cluster, ask: Judge, caller: Caller, local: datetime, known: Known) -> Decided:
    """``stands`` True, False, or None where it can never be met. Raises Refused and LookUp."""
    depend, ended = resolve(cluster, ask.condition, caller, False, known, None)
    world = copy.copy(cluster)
    world.ended = Table()
    world.ended.rows = {**cluster.ended.rows, **dict(ended)}
    return Decided(answer={"stands": evaluate(world, depend, local_of(local))})

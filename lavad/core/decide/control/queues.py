"""badmin qopen, qclose, qact, qinact."""

from __future__ import annotations

from datetime import datetime

from lavad.core import events as ev
from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.base.decisions import decides_in_local_time
from lavad.core.lang.asks import Caller, Queues
from lavad.core.lang.windows import is_open, local_of, parse_windows
from lavad.core.site.rights import why_not_queue


@decides_in_local_time(Queues)
def switch_queues(cluster: Cluster, ask: Queues, caller: Caller, now: float, local: datetime) -> Decided:
    """Switch each named queue (``all``: every one; none: the default queues); stops at the first refusal."""
    decided = Decided(answer={"results": []})
    names = ask.queues or list(cluster.conf.params.default_queue)
    if names == ["all"]:
        names = [queue.name for queue in cluster.conf.queues]
    for name in names:
        why = ""
        if name not in cluster.queue_conf:
            why = "No such queue"
        elif denied := why_not_queue(cluster.conf, name, caller):
            why = denied
        elif ask.what == "qact" and not is_open(parse_windows(cluster.queue_conf[name].run_window), local_of(local)):
            why = "Not activated because queue windows are closed"
        decided.answer["results"].append({"queue": name, "ok": not why, "why": why})
        if why:
            break
        row = cluster.queue_state(name)
        opened = {"qopen": True, "qclose": False}.get(ask.what, row.open)
        active = {"qact": True, "qinact": False}.get(ask.what, row.active)
        event = ev.QueueSwitched(
            at=now, queue=name, open=opened, active=active, by=caller.user, comment=ask.comment, what=ask.what
        )
        decided.events.append(event)
    return decided

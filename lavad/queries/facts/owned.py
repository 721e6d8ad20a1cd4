"""What queues own of the slots, have and deserve now, as the scheduler works it out."""

from __future__ import annotations

from config.model.queue import QueueConfig
from lavad.core.rules import ownership
from lavad.queries.frame.view import View


def table(view: View) -> list[tuple[QueueConfig, int, int]]:
    """(queue, slots that it has, slots that it deserves); empty where no queue owns any."""
    cluster = view.cluster
    if not ownership.has_owners(cluster.conf):
        return []
    total = ownership.total_slots(cluster)
    lent = ownership.lent_slots(cluster)
    waiting = ownership.waiting_slots(cluster, total)
    deserved = ownership.deal(total, ownership.claims(cluster, waiting))
    has = {queue.name: ownership.has_slots(cluster, queue.name) - lent.get(queue.name, 0) for queue in cluster.conf.queues}
    return [(queue, has[queue.name], deserved[queue.name]) for queue in cluster.conf.queues]


def words(view: View, name: str) -> str:
    """One line of bqueues -l; "" where no queue owns slots."""
    for queue, has, deserved in table(view):
        if queue.name == name:
            most = "-" if queue.capability is None else queue.capability
            reclaimable = "Y" if queue.reclaimable else "N"
            return (
                f"\nOWNED SLOTS:  WEIGHT {queue.weight or 1}  CAPABILITY {most}  GUARANTEE {queue.guarantee}  "
                f"RECLAIMABLE {reclaimable}  DESERVED {deserved}  USED {has}\n"
            )
    return ""

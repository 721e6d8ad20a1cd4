"""The sentences of bhist -t and badmin hist about hosts, queues and masters."""

from __future__ import annotations

from lavad.core import events as ev
from proto.help.usages import QUEUE_CHANGES


def _queue_state(event: ev.QueueSwitched) -> str:
    known = QUEUE_CHANGES.get(event.what)
    return known or f"{'opened' if event.open else 'closed'} and {'activated' if event.active else 'inactivated'}"


def cluster_sentence(event: ev.Event) -> str:
    """What bhist -t and badmin hist say of a host, a queue or the master; "" for an event of another kind."""
    if isinstance(event, ev.MasterStarted):
        return f"mbatchd started on host <{event.host}>."
    if isinstance(event, ev.StoreRestored):
        return f"The store was restored from a backup; job ids go on at <{event.next_job}>."
    if isinstance(event, ev.LeasesExtended):
        return f"Leases extended by <{event.seconds:g}> seconds by administrator <{event.by}>."
    if isinstance(event, ev.HostSwitched):
        verb = "closed" if event.closed else "opened"
        return f"Host <{event.host}> {verb} by administrator <{event.by}> {event.comment}."
    if isinstance(event, ev.GpuSwitched):
        verb = "closed" if event.closed else "opened"
        return f"GPU <{event.gpu}> of host <{event.host}> {verb} by administrator <{event.by}> {event.comment}."
    if isinstance(event, ev.QueueSwitched):
        comment = f" {event.comment}" if event.comment else ""
        return f"Queue <{event.queue}> {_queue_state(event)} by user or administrator <{event.by}>{comment}."
    if isinstance(event, ev.HostFenced):
        off = "nothing runs there any more" if event.ok else "it may still run jobs"
        return f"Host <{event.host}>: LAVA_FENCE {event.how}, {off}{': ' + event.text if event.text else ''}."
    if isinstance(event, ev.HostLeft):
        return f"Host <{event.host}> has left the cluster: {event.why}."
    if isinstance(event, ev.HostDown):
        return f"Host <{event.host}> is unavailable."
    return f"Host <{event.host}> is available." if isinstance(event, ev.HostUp) else ""

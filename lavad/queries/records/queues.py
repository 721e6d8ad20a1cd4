"""Queues as records, with the share trees that their fair share follows."""

from __future__ import annotations

from collections.abc import Iterator

from config.model.queue import QueueConfig
from lavad.core.lang.asks import Refused
from lavad.core.site.rights import is_queue_admin
from lavad.queries.facts import shares
from lavad.queries.facts.queuefacts import QueueRow
from lavad.queries.frame.request import Request
from lavad.queries.records import asked
from lavad.sched.order.fairshare import queue_policies
from lavad.sched.order.share_tree import Node, Tree
from proto import site_records

LARGEST = 1e6
"""A priority above it is shown as this."""


def row(request: Request, conf: QueueConfig) -> site_records.QueueRow:
    found = QueueRow(request.view, conf, request.now)
    return site_records.QueueRow(
        name=conf.name,
        description=conf.description,
        priority=conf.priority,
        status=found.status,
        pend=found.pend,
        run=found.run,
        susp=found.susp,
        reserved=found.rsv,
        limit=conf.qjob_limit,
        may_change=is_queue_admin(request.cluster.conf, conf.name, request.caller),
    )


def read(request: Request) -> site_records.Queues:
    queues = sorted(request.cluster.conf.queues, key=lambda queue: (-queue.priority, queue.name))
    return site_records.Queues(queues=[row(request, queue) for queue in queues])


def read_one(request: Request) -> site_records.Queue:
    name = asked.name(request)
    conf = request.cluster.queue_conf.get(name)
    if conf is None:
        raise Refused(f"{name}: No such queue")
    policy = queue_policies(request.cluster.conf).get(name)
    found = []
    if policy is not None:
        tree = shares.full_tree(request.view, policy, request.now)
        found = list(_nodes(tree, tree.root, ""))
    return site_records.Queue(
        row=row(request, conf),
        users=list(conf.users),
        hosts=list(conf.hosts),
        run_limit=conf.limits.run,
        shares=found,
    )


def _nodes(tree: Tree, above: Node, path: str) -> Iterator[site_records.Share]:
    for node in sorted(above.children.values(), key=lambda node: (-tree.priority(node), node.at, node.name)):
        yield site_records.Share(
            path=f"{path}/{node.name}",
            shares=node.shares,
            priority=min(tree.priority(node), LARGEST),
            slots=int(node.slots),
            reserved=int(node.reserved),
            cpu_time=node.cpu,
            run_time=node.run + node.hist_run,
            gpu_time=node.gpu + node.hist_gpu,
        )
        yield from _nodes(tree, node, f"{path}/{node.name}")

"""bqueues: queues by priority, with their status, limits and job slots."""

from __future__ import annotations

from collections.abc import Iterator

from config.model.queue import QueueConfig
from lavad.core.lang.asks import Refused
from lavad.core.site.host_names import preferences
from lavad.core.site.rights import may_use_queue
from lavad.queries.facts import hostfacts
from lavad.queries.facts.queuefacts import QueueRow, limit
from lavad.queries.frame import columns
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.queues import bqueues_custom, bqueues_long

HEADER = "QUEUE_NAME     PRIO      STATUS      MAX  JL/U JL/P JL/H NJOBS  PEND  RUN  SUSP\n"
WIDE = "QUEUE_NAME     PRIO      STATUS      MAX  JL/U JL/P JL/H NJOBS  PEND  RUN  SUSP  RSV PJOBS\n"


def show(request: Request) -> Iterator[Shown]:
    """The pieces of a listing."""
    options = request.options()
    queues = _queues(request, options.text("m"), options.text("u"))
    rows = [QueueRow(request.view, conf, request.now) for conf in queues]
    if not rows:
        raise Refused("No queue found")
    given = options.find("o") or options.text("LSB_BQUEUES_FORMAT") or request.view.lsf.get("LSB_BQUEUES_FORMAT", "")
    if options.any("l", "r"):
        for at, row in enumerate(rows):
            yield out(("-" * 79 + "\n\n" if at else "\n") + bqueues_long.record(row, "r" in options))
    elif options.any("o", "json") or (given and "w" not in options):
        if "json" in options and "noheader" in options:
            raise Refused("bqueues: -json and -noheader cannot be used together")
        custom = columns.parse("bqueues", given or bqueues_custom.DEFAULT, bqueues_custom.FIELDS)
        yield from bqueues_custom.show(rows, custom, "json" in options, "noheader" not in options)
    else:
        if "noheader" not in options:
            yield out(WIDE if "w" in options else HEADER)
        for row in rows:
            yield out(_line(row, "w" in options))


def _queues(request: Request, host: str, user: str) -> list[QueueConfig]:
    """The queues asked for; an unknown name refuses the whole command, as in LSF."""
    conf = request.cluster.conf
    known = request.cluster.queue_conf
    for word in request.words:
        if word not in known and word != "all":
            raise Refused(f"{word}: No such queue")
    wanted = [known[word] for word in request.words if word != "all"]
    if not wanted or "all" in request.words:
        wanted = list(conf.queues)
    if user and user != "all":
        wanted = [queue for queue in wanted if may_use_queue(conf, queue, user)]
    if host and host != "all":
        hosts = set(hostfacts.named(request, [host]))
        everything = hostfacts.all_hosts(request.view)
        wanted = [queue for queue in wanted if hosts & set(preferences(conf, queue.hosts, everything))]
    return sorted(dict.fromkeys(wanted), key=lambda queue: (-queue.priority, queue.name))


def _line(row: QueueRow, wide: bool) -> str:
    conf = row.conf
    name = f"{conf.name:<14}" if wide else f"{conf.name:<14.14}"
    status = f"{row.status:^19}"[:18]
    text = (
        f"{name} {conf.priority:>3}{status}{limit(conf.qjob_limit):>4}{limit(conf.ujob_limit):>5}"
        f"{limit(conf.pjob_limit):>5}{limit(conf.hjob_limit):>5}{row.njobs:>6}{row.pend:>6}"
        f"{row.run:>6}{row.susp:>6} "
    )
    return f"{text}{row.rsv:>4} {row.pend:>5}\n" if wide else text + "\n"

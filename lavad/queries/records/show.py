"""The query ``api``: its first word says which records, its options which of them; the answer is JSON on stdout."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from lavad.core.lang.asks import Refused
from lavad.queries.frame.request import Request, Shown, as_is
from lavad.queries.records import arrays, chart, hosts, job, jobs, overview, queues, site
from proto.records import Record

_encode = msgspec.json.Encoder().encode
READERS: dict[str, Callable[[Request], Record]] = {
    "overview": overview.read,
    "me": site.read_me,
    "jobs": jobs.read,
    "job": job.read,
    "why": job.read_why,
    "array": arrays.read,
    "hosts": hosts.read,
    "host": hosts.read_one,
    "queues": queues.read,
    "queue": queues.read_one,
    "users": site.read_users,
    "use": site.read_use,
    "chart": chart.read,
    "health": site.read_health,
}


def show(request: Request) -> Iterator[Shown]:
    """One record."""
    request.options()
    read = READERS.get(request.words[0] if request.words else "")
    if read is None:
        raise Refused(f"api: one of {', '.join(READERS)} is expected")
    # JSON escapes what a terminal would obey
    yield as_is(_encode(read(request)).decode())

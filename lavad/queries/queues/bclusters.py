"""bclusters: jobs and hosts that go between clusters. There is one cluster, so there are none."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.queries.frame.request import Request, Shown, out


def show(request: Request) -> Iterator[Shown]:
    """LSF's two sections, or with -app the one on application profiles."""
    options = request.options()
    for word in request.words:
        if word != request.view.name:
            raise Refused(f"{word}: Bad cluster name")
    if "app" in options:
        yield out("[Remote Cluster Application Information ]\nNo application profile of a remote cluster is known\n")
        return
    yield out("[Job Forwarding Information ]\nNo local queue sending/receiving jobs from remote clusters\n\n")
    yield out("[Resource Lease Information ]\nNo resources have been exported or borrowed\n")

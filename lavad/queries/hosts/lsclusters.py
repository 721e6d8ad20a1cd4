"""lsclusters: the cluster in one line."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.queries.facts import hostfacts
from lavad.queries.frame.request import Request, Shown, out


def show(request: Request) -> Iterator[Shown]:
    """Header and line."""
    options = request.options()
    view = request.view
    for word in request.words:
        if word != view.name:
            raise Refused(f"{word}: Bad cluster name")
    hosts = hostfacts.all_hosts(view)
    servers = sum(hostfacts.conf_of(view, name).server for name in hosts)
    admin = view.cluster.conf.admins[0] if view.cluster.conf.admins else "-"
    yield out("CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS\n")
    yield out(f"{view.name:<14} {'ok':<8} {view.master:<20} {admin:>10} {len(hosts):>8} {servers:>8}\n")
    if "l" in options:
        types = dict.fromkeys(hostfacts.type_of(view, name) for name in hosts)
        models = dict.fromkeys(hostfacts.model_of(view, name) for name in hosts)
        resources = [resource.name for resource in view.cluster.conf.resources]
        for title, words in (
            ("LSF administrators", view.cluster.conf.admins),
            ("Available resources", resources),
            ("Available host types", types),
            ("Available host models", models),
        ):
            yield out(f"\n{title}: {' '.join(words) or '-'}\n")

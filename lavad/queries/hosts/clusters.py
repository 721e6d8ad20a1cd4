"""The cluster as a whole: lsid and lsclusters; and bclusters: there is one cluster, so no job or host goes between clusters."""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.lang.asks import Refused
from lavad.queries.facts import hostfacts
from lavad.queries.frame.request import Request, Shown, out
from lavad.queries.frame.view import View
from proto.version import PRODUCT, RELEASED


def product(view: View) -> str:
    """The line that says which product this is: with LSF_COMPAT_VERSION the one that tools look for.

    A site gives the whole line, or the version of LSF alone (``10.1.0.0``).
    """
    compat = view.lsf.get("LSF_COMPAT_VERSION", "").strip()
    if " " in compat:
        return compat
    return f"IBM Spectrum LSF Standard {compat}, {RELEASED}" if compat else PRODUCT


def show_lsid(request: Request) -> Iterator[Shown]:
    request.options()
    view = request.view
    yield out(f"{product(view)}\n\nMy cluster name is {view.name}\nMy master name is {view.master}\n")


def show_lsclusters(request: Request) -> Iterator[Shown]:
    """lsclusters: one line; -l: what the cluster knows."""
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


def show_bclusters(request: Request) -> Iterator[Shown]:
    """bclusters: LSF's two sections, or with -app the one on application profiles."""
    options = request.options()
    for word in request.words:
        if word != request.view.name:
            raise Refused(f"{word}: Bad cluster name")
    if "app" in options:
        yield out("[Remote Cluster Application Information ]\nNo application profile of a remote cluster is known\n")
        return
    yield out("[Job Forwarding Information ]\nNo local queue sending/receiving jobs from remote clusters\n\n")
    yield out("[Resource Lease Information ]\nNo resources have been exported or borrowed\n")

"""badmin and lsadmin about daemons: who may, which hosts, and that the service manager starts and stops lava's.

Rule: LSF's words for each host; an administrator is told what to do instead, anybody else that they may not.
"""

from __future__ import annotations

from collections.abc import Iterator

from lavad.core.site.rights import is_admin
from lavad.queries.facts import hostfacts
from lavad.queries.frame.request import Request, Shown, err, leave

_BATCH = {
    "hrestart": "Restart slave batch daemon on",
    "hshutdown": "Shut down slave batch daemon on",
    "hstartup": "Start up slave batch daemon on",
}
_BASE = {
    "limstartup": "Start up LIM on",
    "limshutdown": "Shut down LIM on",
    "limrestart": "Restart LIM on",
    "resstartup": "Start up RES on",
    "resshutdown": "Shut down RES on",
    "resrestart": "Restart RES on",
    "limlock": "Lock LIM on",
    "limunlock": "Unlock LIM on",
}
DENIED_BATCH = "Host control failed.: User permission denied"
DENIED_BASE = "ls_limcontrol: Operation permission denied by LIM"
COMMANDS = frozenset({*_BATCH, *_BASE})


def show(request: Request, what: str, words: list[str]) -> Iterator[Shown]:
    """A line a host: never done, as lava's daemons are services of the host."""
    if what in _BATCH:
        verb, denied = _BATCH[what], DENIED_BATCH
        instead = "Host control failed.: lava leaves it to the service lava-agent of the host"
    else:
        verb, denied = _BASE[what], DENIED_BASE
        instead = "ls_limcontrol: lava leaves it to the service lava-agent of the host"
        if what in ("limlock", "limunlock"):
            instead = "ls_limcontrol: lava does it with badmin hclose and hopen"
    allowed = is_admin(request.cluster.conf, request.caller)
    if not words:
        words = [request.caller.host]
    for name in hostfacts.named(request, words):
        yield err(f"{verb} <{name}> ...... {instead if allowed else denied}")
    yield leave(255)

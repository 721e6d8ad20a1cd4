"""bslots: slots that are free, or held for waiting jobs or reserved, and so can serve shorter ones meanwhile (backfill windows).

Rule: a row counts the slots that are free for its time at least, so those of the rows above it are among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lavad.core.job.spec import Spec
from lavad.core.lang.asks import Refused
from lavad.core.lang.states import HostState
from lavad.core.lang.when import WhenError, parse_limit
from lavad.core.rules.ledger import Ledger
from lavad.core.rules.reserved import NEVER, Reserved
from lavad.queries.facts import hostfacts
from lavad.queries.frame.request import Request, Shown, out
from proto.numbers import find_number

Window = tuple[float | None, Counter[str]]
"""Seconds (None: nobody can say when it ends) and slots by host."""


def show(request: Request) -> Iterator[Shown]:
    """The windows, the longest first; -n and -W leave out what is too small or too short, -R hosts that do not fit."""
    options = request.options()
    least, need = _count(options.text("n")), _seconds(options.text("W"))
    windows = [
        (seconds, hosts)
        for seconds, hosts in _windows(request, options.text("R"))
        if hosts.total() >= least and (seconds is None or seconds >= need)
    ]
    if not windows:
        yield out("No backfill window exists at this time\n")
    elif "l" in options:
        yield out("\n".join(map(_record, windows)))
    else:
        yield out("SLOTS          RUNTIME\n")
        yield out("".join(f"{hosts.total():<14} {_words(seconds)}\n" for seconds, hosts in windows))


def _windows(request: Request, resreq: str) -> list[Window]:
    ends: dict[float | None, Counter[str]] = {}
    for host, slots, start in _free(request):
        ends.setdefault(_left(request, start), Counter())[host] += slots
    fitting = set(hostfacts.fitting(request, hostfacts.all_hosts(request.view), resreq)) if resreq else None
    for host, slots, start in _held(request):
        if hostfacts.host_of(request.view, host).state is HostState.OK and (fitting is None or host in fitting):
            ends.setdefault(_left(request, start), Counter())[host] += slots
    if fitting is not None:
        ends = {left: Counter({host: slots for host, slots in row.items() if host in fitting}) for left, row in ends.items()}
    ends.pop(0.0, None)
    found: list[Window] = []
    total: Counter[str] = Counter()
    for left in sorted(ends, key=lambda left: float("inf") if left is None else left, reverse=True):
        total = total + ends[left]
        if total:
            found.append((left, total))
    return found


def _left(request: Request, start: float) -> float | None:
    """Seconds until slots are taken at ``start``, in whole minutes; None: it is not known, or they never are."""
    return max(0.0, (start - request.now) // 60 * 60) if start else None


def _free(request: Request) -> Iterator[tuple[str, int, float]]:
    """Host, slots and when they are taken (0: never) of what nobody uses and nothing is held for, of hosts that take jobs."""
    view = request.view
    reserved = Reserved(Ledger(request.cluster), request.now)
    for host in hostfacts.all_hosts(view):
        slots = hostfacts.Slots(view, host)
        free = slots.max - slots.all - slots.rsv
        if free > 0 and hostfacts.status(view, host, request.now, slots) == "ok":
            yield from ((host, *window) for window in _until_reserved(reserved, host, free))


def _until_reserved(reserved: Reserved, host: str, free: int) -> Iterator[tuple[int, float]]:
    """Slots, of those free on a host, and when advance reservations need them (0: never)."""
    job, now = Spec(user="", queue=""), reserved.now
    begins = sorted({row.begin for row, _ in reserved.by_host.get(host, ()) if row.begin > now})
    longer = 0
    for end in (NEVER, *reversed(begins)):
        room = max(0, free - reserved.kept(job, host, now, end))
        if room > longer:
            yield room - longer, 0.0 if end == NEVER else end
        longer = max(longer, room)


def _held(request: Request) -> Iterator[tuple[str, int, float]]:
    """Host, slots and when they are taken (0: not known) of all that is held."""
    cluster = request.cluster
    for reserved in request.view.soft.promises.values():
        for host, slots in reserved.held:
            yield host, slots, reserved.start
    for key in cluster.promised:
        for part in cluster.jobs.rows[key].promised:
            used = cluster.use.hosts[part.host].slots if part.host in cluster.use.hosts else 0
            free = max(0, cluster.slots_of(part.host) - used)
            if free:
                yield part.host, min(free, part.slots), 0.0


def _words(seconds: float | None) -> str:
    if seconds is None:
        return "UNLIMITED"
    hours, minutes = int(seconds) // 3600, int(seconds) // 60 % 60
    lead = f"{hours} hour{'s' if hours > 1 else ''} " if hours else ""
    return f"{lead}{minutes} minute{'' if minutes == 1 else 's'}"


def _record(window: Window) -> str:
    seconds, hosts = window
    named = " ".join(f"{slots}*{host}" for host, slots in sorted(hosts.items()))
    return f"SLOTS: {hosts.total()}\nRUNTIME: {_words(seconds)}\nHOSTS: {named}\n"


def _count(text: str) -> int:
    count = find_number(text or "1")
    if not count:
        raise Refused(f"{text[:80]}: Bad number of slots")
    return count


def _seconds(text: str) -> int:
    try:
        return parse_limit(text)[0] if text else 0
    except WhenError:
        raise Refused(f"{text[:80]}: Bad RUNLIMIT specification") from None

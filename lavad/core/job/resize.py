"""Resizable jobs: the hosts and slots that an attempt has, wants, and may give up.

A growth belongs to the job at once: the new hosts are prepared and released one by one, and the growth is complete when all of
them run and the notification command has succeeded. A shrink waits for its command; then slots are free at once, and a host is
``leaving`` until nothing of the part is left on it. There is one resize at a time.
Rule: pure. The first host never leaves, and only a user's own release takes a job below its minimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lavad.core.job.gpu_use import GpuSums, measured
from lavad.core.job.job import Attempt, End, Job, Part, Placed
from lavad.core.job.places import places_of
from lavad.core.job.spec import Spec
from lavad.core.lang.states import OVER, PartState

RETRY = 60.0
"""Seconds after a growth that failed before the next one."""
WHOLE_HOSTS = ("torchrun",)
"""Launches with a process on each host that cannot follow a change of its slots."""


def why_not_resizable(launch: str) -> str:
    """Why jobs of this launch cannot change while they run, "" if they can."""
    kind, _, words = launch.partition("(")
    if kind in WHOLE_HOSTS and "static" in words:
        return f"-a {launch} has a fixed number of hosts: such a job cannot be resized"
    if kind and kind not in WHOLE_HOSTS and kind not in ("openmpi", "intelmpi", "mpich"):
        return f"-a {kind} starts a fixed number of ranks: such a job cannot be resized"
    return ""


def by_hosts(spec: Spec) -> bool:
    """Whether the job grows and shrinks by whole hosts only."""
    return spec.launch.partition("(")[0] in WHOLE_HOSTS


def uid_of(run: Attempt, part: Part) -> str:
    """The uid of a part. One that was added has its own: the host may have had an earlier part of the attempt."""
    return f"{run.uid}x{part.node_index}" if part.grown else run.uid


def is_part(run: Attempt, host: str, uid: str) -> bool:
    """Whether the attempt has a part with this uid on the host."""
    return any(uid_of(run, run.parts[at]) == uid for at in places_of(run, host))


def staying(run: Attempt) -> list[Part]:
    """The parts that are not leaving."""
    return [part for part in run.parts if not part.leaving and part.state not in OVER]


def slots_of(run: Attempt) -> int:
    """Slots of the parts that stay, less those that a shrink in progress takes away."""
    total = sum(part.slots for part in staying(run))
    if run.resize is not None and not run.resize.grow and not run.resize.done:
        total -= sum(placed.slots for placed in run.resize.parts)
    return total


def in_use(run: Attempt) -> list[Part]:
    """The parts that the job itself is told about: added hosts only once they run."""
    return [part for part in staying(run) if not part.grown or part.state is PartState.RUNNING]


def may_lose(job: Job, spec: Spec, host: str) -> bool:
    """Whether the attempt can continue without this host."""
    run = job.run
    if run is None or not run.elastic or run.verdict is not None or run.refused or run.parts[0].host == host:
        return False
    part = next((part for part in run.parts if part.host == host), None)
    if part is None or part.state in OVER:
        return False
    if part.leaving or (part.grown and part.state is not PartState.RUNNING):
        return True
    begun = run.parts[0].state is PartState.RUNNING
    return begun and slots_of(run) - part.slots >= spec.slots


def wants(run: Attempt, spec: Spec) -> tuple[int, int]:
    """(minimum, maximum) of additional slots that the job wants; (0, 0): none."""
    have = slots_of(run)
    least, most = run.wanted if run.wanted is not None else (1, spec.max_slots) if spec.autoresize else (0, 0)
    return (min(max(1, least), most - have), most - have) if most > have else (0, 0)


def why_not_grow(job: Job, spec: Spec, now: float) -> str:
    """Why a started job cannot grow now; "": it can."""
    run = job.run
    if run is None or not run.elastic or job.preempted_for or job.state.name != "RUN":
        return "it does not run"
    if run.resize is not None:
        return "another resize is under way"
    if run.verdict is not None or run.refused or run.is_ending:
        return "it ends"
    if run.parts[0].state is not PartState.RUNNING or now < run.grow_after:
        return "it has just begun"
    return "" if wants(run, spec)[1] else "it has all that it wants"


def grown(run: Attempt, parts: Iterable[Placed], at: float) -> Attempt:
    """The attempt after a growth."""
    rows = list(run.parts)
    next_index = run.next_node_index
    for placed in parts:
        known = next((n for n, part in enumerate(rows) if part.host == placed.host), None)
        if known is None:
            rows.append(
                Part(
                    host=placed.host,
                    slots=placed.slots,
                    gpus=placed.gpus,
                    reserved=placed.reserved,
                    binds=placed.binds,
                    node_index=next_index,
                    grown=True,
                )
            )
            next_index += 1
        else:
            part = rows[known]
            rows[known] = replace(
                part,
                slots=part.slots + placed.slots,
                gpus=(*part.gpus, *placed.gpus),
                binds=(*part.binds, *placed.binds),
                reserved=_summed(part.reserved, placed.reserved, 1),
            )
        run = _spent(run, placed, at, -1)
    return replace(run, parts=tuple(rows), next_node_index=next_index)


def shrunk(run: Attempt, parts: Iterable[Placed], at: float, preempted_for: int = 0) -> Attempt:
    """The attempt after a shrink: whole hosts are leaving, slots of a remaining host are free at once."""
    rows = list(run.parts)
    for placed in parts:
        known = next((n for n, part in enumerate(rows) if part.host == placed.host and not part.leaving), None)
        if known is None:
            continue
        part = rows[known]
        if placed.slots >= part.slots and known:
            rows[known] = replace(part, leaving=True, preempted_for=preempted_for)
            continue
        less = min(placed.slots, part.slots - 1)
        rows[known] = replace(
            part,
            slots=part.slots - less,
            binds=part.binds[:-less] if less else part.binds,
            gpus=tuple(gpu for gpu in part.gpus if gpu not in placed.gpus),
            reserved=_summed(part.reserved, placed.reserved, -1),
        )
        run = _spent(run, replace(placed, slots=less), at, 1)
    return replace(run, parts=tuple(rows))


def trimmed(run: Attempt, hosts: Iterable[str]) -> Attempt:
    """The attempt with these hosts taken out of the resize in progress; a resize without hosts is over."""
    gone = set(hosts)
    if run.resize is None or not any(placed.host in gone for placed in run.resize.parts):
        return run
    rest = tuple(placed for placed in run.resize.parts if placed.host not in gone)
    return replace(run, resize=replace(run.resize, parts=rest) if rest else None)


def without(run: Attempt, host: str, at: float, end: End | None = None) -> Attempt:
    """The attempt without a host that has left, on which its part ended so."""
    part = next(part for part in run.parts if part.host == host)
    run = _spent(run, Placed(host=host, slots=part.slots, gpus=part.gpus), at, 1)
    slots, gpus, used = run.spent
    parts = tuple(part for part in run.parts if part.host != host)
    run = replace(run, parts=parts)
    if end is not None:
        run = replace(run, spent=(slots, gpus, used + end.utime + end.stime))
        if end.gpus:
            run = replace(run, gpus_left=(run.gpus_left or GpuSums()).plus(measured(end.gpus)))
    return trimmed(run, (host,))


def _spent(run: Attempt, placed: Placed, at: float, sign: int) -> Attempt:
    """Correct ``spent``: added slots were not used since the start (sign -1), removed ones were used until now (1)."""
    seconds = max(0.0, at - run.started) if run.started else 0.0
    slots, gpus, cpu = run.spent
    return replace(run, spent=(slots + sign * placed.slots * seconds, gpus + sign * len(placed.gpus) * seconds, cpu))


Amounts = Sequence[tuple[str, float]]


def _summed(one: Amounts, other: Amounts, sign: int) -> tuple[tuple[str, float], ...]:
    total: Counter[str] = Counter()
    for name, amount in one:
        total[name] += amount  # type: ignore[assignment]
    for name, amount in other:
        total[name] += sign * amount  # type: ignore[assignment]
    return tuple((name, float(amount)) for name, amount in total.items() if amount > 1e-9)


def portion(part: Part, slots: int, per_slot: Amounts = ()) -> Placed:
    """``slots`` slots of a part with their share of its resources; the last slot takes everything."""
    if slots >= part.slots:
        return Placed(host=part.host, slots=part.slots, gpus=part.gpus, reserved=part.reserved)
    gone = tuple((name, amount * slots) for name, amount in per_slot)
    return Placed(host=part.host, slots=slots, reserved=gone)


def is_complete(run: Attempt) -> bool:
    """Whether all hosts of the growth in progress run."""
    resize = run.resize
    if resize is None or not resize.grow:
        return False
    hosts = {placed.host for placed in resize.parts}
    return all(part.state is PartState.RUNNING for part in run.parts if part.host in hosts)


def must_notify(run: Attempt) -> bool:
    """Whether the notification command of the resize in progress is to run now."""
    resize = run.resize
    if resize is None or not resize.command or run.parts[0].state is not PartState.RUNNING:
        return False
    return is_complete(run) if resize.grow else True


def surplus(run: Attempt, least: int, whole: bool) -> list[tuple[Part, int]]:
    """(part, slots) beyond the minimum, newest host first; whole hosts before slots of a host that stays."""
    left = slots_of(run) - least
    found: list[tuple[Part, int]] = []
    parts = [part for part in staying(run) if part.state is PartState.RUNNING]
    for part in reversed(parts[1:]):
        if part.slots <= left:
            found.append((part, part.slots))
            left -= part.slots
    if not whole:
        taken = {part.host for part, _ in found}
        for part in reversed(parts):
            slots = min(left, part.slots - 1)
            if part.host not in taken and slots > 0:
                found.append((part, slots))
                left -= slots
    return found

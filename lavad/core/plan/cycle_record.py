"""What a plan was decided on beside the events: the time, and the soft state as far as a scheduler reads it.

Rule: the events up to ``version`` and the records up to this one give the scheduler's world exactly; with them a replay
must come to the same decisions.
"""

from __future__ import annotations

import zlib
from hashlib import blake2b

import msgspec

from lavad.core.lang.windows import Local
from lavad.core.plan.plan import Plan
from lavad.core.plan.volatile import GpuState, PartUsage, Soft


class CycleRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """News of the soft state since the record before, and what was decided on it."""

    version: int
    now: float
    local: Local
    digest: bytes
    """Of the decisions."""
    anew: bool = False
    """Whether the record has the whole soft state, so that earlier ones are not needed."""
    load: dict[str, dict[str, float]] = {}
    usage: tuple[tuple[str, PartUsage], ...] = ()
    """Host and usage, without what no scheduler reads."""
    gpus: dict[str, dict[str, int]] = {}
    """Host to the UUID of a GPU to the MB in use, of hosts where that has changed; as ``gpu_memory_in_use`` has it."""


class RecordedCycle(msgspec.Struct, frozen=True):
    """A row of the store: what a plan was decided on, and what the master made of it: ``count`` events, from ``first`` on."""

    version: int
    first: int
    count: int
    at: float
    seed: str
    anew: bool
    data: bytes


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(CycleRecord)


def decisions_of(plan: Plan) -> tuple[object, ...]:
    """What of a plan changes anything."""
    found = (plan.placements, plan.preemptions, plan.resumes, plan.suspensions, plan.releases)
    if plan.run_limits or plan.extensions:
        return found, plan.growths, plan.holds, plan.deadlocked, plan.run_limits, plan.extensions
    if plan.holds or plan.deadlocked:
        return found, plan.growths, plan.holds, plan.deadlocked
    return (found, plan.growths) if plan.growths else found  # a plan without growths differs from one of an older version


def digest_of(plan: Plan) -> bytes:
    """Equal for equal decisions, byte for byte."""
    return blake2b(_encode(decisions_of(plan)), digest_size=16).digest()


def slim(usage: PartUsage) -> PartUsage:
    """Usage with what a scheduler reads of it."""
    return PartUsage(key=usage.key, attempt=usage.attempt, at=usage.at, cpu=usage.cpu, rss=usage.rss, swap=usage.swap)


def gpu_memory_in_use(soft: Soft, host: str) -> dict[str, int]:
    """What a scheduler reads of the GPUs of a host: MB, in whole GB."""
    return {uuid: state.gb_used * 1024 for uuid, state in soft.gpus[host].items()}


def fold_record(soft: Soft, record: CycleRecord) -> None:
    """Set the soft state to that of this plan."""
    if record.anew:
        soft.load.clear()
        soft.usage.clear()
        soft.gpus.clear()
    soft.load.update(record.load)
    for host, used in record.gpus.items():
        soft.gpus[host] = {uuid: GpuState(uuid=uuid, mem_used=mb) for uuid, mb in used.items()}
    for host, usage in record.usage:
        soft.usage.setdefault(usage.key, {})[host] = usage


def pack(record: CycleRecord) -> bytes:
    """As it is stored."""
    return zlib.compress(_encode(record), 1)


def unpack(data: bytes) -> CycleRecord:
    """Raises ``ValueError`` where it does not read."""
    try:
        return _decoder.decode(zlib.decompress(data))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(f"the record of a plan does not read: {error}") from error

"""Records to bytes and back.

Rule: msgpack with field names, so that fields with defaults may be added and old rows still read.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from lavad.core.cluster.charge import Charge
from lavad.core.events import AnyEvent, Configured, Event
from lavad.core.job.groups import JobGroup
from lavad.core.job.job import Array, Job
from lavad.core.job.memory import Learnt
from lavad.core.job.pace import Pace
from lavad.core.job.spec import JobText, Spec
from lavad.core.site.conf import QueueAdmin
from lavad.core.site.host import Host
from lavad.core.site.reservation import Reservation
from lavad.core.site.tokens import UserTokens
from lavad.store import older_conf
from lavad.store.errors import StoreCorrupt

T = TypeVar("T")


class _Classed(msgspec.Struct, gc=False):
    """Of a job's record, its spec."""

    spec: int


class _Outcome(msgspec.Struct, gc=False):
    """Of how a job ended, what conditions ask about."""

    status: int = 0
    post: int = 0


class _Finished(msgspec.Struct, gc=False):
    """Of a job's record, how it ended."""

    outcome: _Outcome | None = None


_encoder = msgspec.msgpack.Encoder()
encode = _encoder.encode

_events: msgspec.msgpack.Decoder[AnyEvent] = msgspec.msgpack.Decoder(AnyEvent)
_event_rows: msgspec.msgpack.Decoder[AnyEvent | list[AnyEvent]] = msgspec.msgpack.Decoder(AnyEvent | list[AnyEvent])
_event_lists: msgspec.msgpack.Decoder[list[AnyEvent | list[AnyEvent]]] = msgspec.msgpack.Decoder(list[AnyEvent | list[AnyEvent]])
_jobs = msgspec.msgpack.Decoder(Job)
_job_lists = msgspec.msgpack.Decoder(list[Job])
_classed = msgspec.msgpack.Decoder(list[_Classed])
_finished = msgspec.msgpack.Decoder(_Finished)
_arrays = msgspec.msgpack.Decoder(Array)
_specs = msgspec.msgpack.Decoder(Spec)
_texts = msgspec.msgpack.Decoder(JobText)
_hosts = msgspec.msgpack.Decoder(Host)
_queues = msgspec.msgpack.Decoder(QueueAdmin)
_charges = msgspec.msgpack.Decoder(Charge)
_learnt = msgspec.msgpack.Decoder(Learnt)
_paces = msgspec.msgpack.Decoder(Pace)
_tokens = msgspec.msgpack.Decoder(UserTokens)
_groups = msgspec.msgpack.Decoder(JobGroup)
_reservations = msgspec.msgpack.Decoder(Reservation)
_envs = msgspec.msgpack.Decoder(dict[str, str])


_ARRAY = struct.Struct(">BI")
"""The head of an array in msgpack: its kind (0xDD), how many it has."""
_COMPRESSED = b"\x78"
"""What the data of several events begins with: the head of a stream of zlib, which no map of msgpack has."""
_TAG = 24
"""Bytes at the start of an encoded event that contain the name of its kind."""


def row_id(key: int) -> int:
    """The ``id`` in table jobs of a core key, and vice versa: the two halves are swapped."""
    return (key & 0xFFFFFFFF) << 32 | key >> 32


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes | msgspec.Raw, what: str) -> T:
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StoreCorrupt(f"store is corrupt: {what} does not read: {error}") from error


def encode_events(events: Sequence[Event]) -> bytes:
    """Of one row: they say much the same, and take a fifth of the bytes compressed."""
    return zlib.compress(encode(events), 1)


def decode_event(seq: int, data: bytes) -> Event:
    if b"Configured" in data[:_TAG]:
        return _configured(seq, data)
    return _decode(_events, data, f"event {seq}")


def decode_events(rows: Sequence[tuple[int, bytes]]) -> list[tuple[int, Event]]:
    """Of rows (number, data): in one go, which takes half of what one by one does. The number is that of the row's last event."""
    found: list[tuple[int, Event]] = []
    rows = [(seq, _plain(seq, data) if data.startswith(_COMPRESSED) else data) for seq, data in rows]
    for row, events in zip(rows, _decode_rows(rows), strict=True):
        if isinstance(events, list):
            found += enumerate(events, row[0] - len(events) + 1)
        else:
            found.append((row[0], events))
    return found


def _plain(seq: int, data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise StoreCorrupt(f"store is corrupt: event {seq} does not read: {error}") from error


def _decode_rows(rows: Sequence[tuple[int, bytes]]) -> Sequence[Event | list[AnyEvent]]:
    if not any(b"Configured" in data[:_TAG] for _, data in rows):
        with contextlib.suppress(msgspec.MsgspecError):  # one by one it is said which does not read
            return _event_lists.decode(_ARRAY.pack(0xDD, len(rows)) + b"".join([data for _, data in rows]))
    return [
        _configured(seq, data) if b"Configured" in data[:_TAG] else _decode(_event_rows, data, f"event {seq}")
        for seq, data in rows
    ]


def _configured(seq: int, data: bytes) -> Event:
    """A stored configuration, possibly of an older version."""
    try:
        raw = msgspec.msgpack.decode(data)
        raw["conf"] = older_conf.upgraded(raw["conf"])
        event: Event = msgspec.convert(raw, Configured, from_attributes=True)
    except (msgspec.MsgspecError, LookupError) as error:
        raise StoreCorrupt(f"store is corrupt: event {seq} does not read: {error}") from error
    return event


def decode_job(data: bytes) -> Job:
    return _decode(_jobs, data, "a row of jobs")


def decode_jobs(data: msgspec.Raw) -> list[Job]:
    """Of a piece of rows."""
    return _decode(_job_lists, data, "a row of jobs")


def specs_of_jobs(data: msgspec.Raw) -> set[int]:
    """The numbers of their specs, without the rest."""
    return {job.spec for job in _decode(_classed, data, "a row of jobs")}


def outcome_of(data: bytes) -> tuple[int, bool]:
    """Of a finished job's record: its wait status, and whether its post-execution command failed. Without the rest."""
    outcome = _decode(_finished, data, "a row of jobs").outcome
    return (0, False) if outcome is None else (outcome.status, outcome.post != 0)


def decode_array(data: bytes) -> Array:
    return _decode(_arrays, data, "a row of arrays")


def decode_spec(number: int, data: bytes) -> Spec:
    return _decode(_specs, data, f"spec {number}")


def decode_text(job: int, data: bytes) -> JobText:
    return _decode(_texts, data, f"the text of job {job}")


def decode_host(data: bytes) -> Host:
    return _decode(_hosts, data, "a row of hosts")


def decode_queue(data: bytes) -> QueueAdmin:
    return _decode(_queues, data, "a row of queues")


def decode_charge(data: bytes) -> Charge:
    return _decode(_charges, data, "a row of charges")


def decode_learnt(data: bytes) -> Learnt:
    return _decode(_learnt, data, "a row of learnt")


def decode_pace(data: bytes) -> Pace:
    return _decode(_paces, data, "a row of paces")


def decode_tokens(data: bytes) -> UserTokens:
    return _decode(_tokens, data, "a row of tokens")


def decode_group(data: bytes) -> JobGroup:
    return _decode(_groups, data, "a row of groups")


def decode_reservation(data: bytes) -> Reservation:
    return _decode(_reservations, data, "a row of reservations")


def decode_env(name: str, data: bytes) -> dict[str, str]:
    return _decode(_envs, data, f"environment {name}")

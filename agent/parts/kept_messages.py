"""What is read and kept of a message of the master's, in memory and on disk.

Rule: what came inside a message is part of its memory, and keeps all of it: whatever stays longer than the message is a copy.
"""

from __future__ import annotations

import zlib
from typing import TypeVar

from agent.core.part import RequestKind
from proto import agent_pb2 as pb

_ENDING = frozenset(kind.value for kind in (RequestKind.KILL, RequestKind.REQUEUE, RequestKind.MIGRATE))
_Message = TypeVar("_Message", pb.JobText, pb.Order)


def alone(message: _Message) -> _Message:
    """The same, in memory of its own."""
    own = type(message)()
    own.CopyFrom(message)
    return own


def saved(order: pb.Order) -> bytes:
    """A start order for the disk: without the keys of the job, which the starter has."""
    start = order.start
    if start.key_pem or start.cert_pem or start.token or start.holders:
        order = alone(order)
        for name in ("key_pem", "cert_pem", "token", "holders"):
            order.start.ClearField(name)
    return order.SerializeToString()


def unpack(order: pb.Order) -> None:
    """Merge it with what it says packed, as all hosts of a large job are told it alike."""
    if order.packed:
        order.MergeFromString(zlib.decompress(order.packed))
        order.ClearField("packed")


def ends(order: pb.Order) -> bool:
    """Whether an order ends this attempt: its job is killed, requeued or migrated."""
    return order.WhichOneof("what") == "signal" and order.signal.kind in _ENDING

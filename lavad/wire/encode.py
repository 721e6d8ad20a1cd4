"""What agents are told: messages from effects, orders and answers. Who sends them need not look inside."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.descriptor import FieldDescriptor

from config.model.values import Limits
from lavad.core.job.endpoint import Endpoint
from lavad.core.job.job import Part
from lavad.core.rules import effects as eff
from lavad.wire.byname import fields_of
from lavad.wire.records import KillOrder, Peek, StartOrder, TextOrder, Welcome
from proto import agent_pb2 as pb

ToAgent: TypeAlias = pb.ToAgent
CommandFrame: TypeAlias = pb.CommandFrame
OrderMessage: TypeAlias = pb.Order
TextMessage: TypeAlias = pb.JobText


# -- messages of a stream ------------------------------------------------------------------------------------------------


def welcome(record: Welcome) -> ToAgent:
    """The answer to a greeting."""
    return pb.ToAgent(welcome=pb.Welcome(**fields_of(record, pb.Welcome)))


def batch(orders: Iterable[OrderMessage], texts: Iterable[TextMessage] = ()) -> ToAgent:
    """Orders that go out together, and the texts that they name."""
    return pb.ToAgent(orders=pb.Orders(texts=texts, orders=orders))


def acks(ended: Iterable[str], serial: int = 0) -> ToAgent:
    """Reports up to ``serial`` are committed; ``ended``: the uids that the host may forget."""
    return pb.ToAgent(acks=pb.Acks(serial=serial, ended=ended))


def echo(sent: float, extended: float, shortest: float) -> ToAgent:
    """The answer to a heartbeat: parts live on for their leases from ``sent``, and at least ``extended`` seconds.

    ``shortest``: the shortest lease of the site, which agents of protocol 1 give all parts.
    """
    return pb.ToAgent(echo=pb.Echo(sent=sent, extended=extended, lease=max(shortest, extended)))


def peek(record: Peek) -> ToAgent:
    """A question about a job's output."""
    return pb.ToAgent(peek=pb.Peek(**fields_of(record, pb.Peek)))


def command_frame(frame: bytes) -> CommandFrame:
    """A piece of the answer to a command."""
    return pb.CommandFrame(frame=frame)


# -- texts of jobs -------------------------------------------------------------------------------------------------------


def job_text(order: TextOrder) -> TextMessage:
    """Everything about a job that is equal for all its parts and elements."""
    return pb.JobText(**text_fields(order))


def no_text(number: int) -> TextMessage:
    """An empty text under a number, in place of one that is not needed any more."""
    return pb.JobText(id=number)


def text_fields(order: TextOrder) -> dict[str, Any]:
    """The fields of the message; where spec and text have the same one, the text's is sent."""
    spec, text, settings = order.spec, order.text, order.settings
    found: dict[str, Any] = {}
    for record in (spec, spec.policy, settings, text, order):
        found |= fields_of(record, pb.JobText)
    if spec.checkpoint is not None:
        checkpoint = {f"checkpoint_{name}": getattr(spec.checkpoint, name) for name in spec.checkpoint.__struct_fields__}
        found |= {name: value for name, value in checkpoint.items() if name in pb.JobText.DESCRIPTOR.fields_by_name}
    roles = zip(spec.roles, text.roles, settings.role_limits, strict=True)
    return found | {
        "min_slots": spec.slots,
        "env": order.env,
        "limits": limits(settings.limits),
        "software": _software(text.software),
        "roles": [
            pb.Role(
                **fields_of(role, pb.Role) | fields_of(own, pb.Role),
                env=own.env,
                limits=limits(role_limits),
                software=_software(own.software),
            )
            for role, own, role_limits in roles
        ],
        "secrets": dict(text.secrets),
        "job_controls": [pb.Control(**fields_of(control, pb.Control)) for control in settings.job_controls],
        "input_data": base64.b64decode(text.input_data),
    }


def _software(steps: tuple[tuple[str, ...], ...]) -> list[pb.Software]:
    return [pb.Software(name=name, values=values) for name, *values in steps]


def limits(record: Limits) -> pb.Limits:
    """None, for no limit, is 0 on the wire, and -1 for core files."""
    found = {name: value or 0 for name, value in fields_of(record, pb.Limits).items()}
    return pb.Limits(**found | {"core": -1 if record.core is None else record.core})


# -- orders --------------------------------------------------------------------------------------------------------------


class Placement(NamedTuple):
    """Where the parts of an attempt are, as each of its start orders says: encoded once, as a large job has many orders."""

    encoded: bytes
    """A Start with these hosts and nothing else."""
    places: dict[str, int]
    """Host to its place among them."""


def placement(parts: Sequence[tuple[Part, int, str]]) -> Placement:
    """Of part, seat and the address of its host each."""
    hosts = [
        pb.HostSlots(
            host=part.host,
            slots=part.slots,
            gpus=part.gpus,
            seat=seat,
            address=address,
            roles=[pb.RoleSlots(role=role, first=first, count=count) for role, first, count in part.roles],
            binds=[pb.Bind(**fields_of(bind, pb.Bind)) for bind in part.binds],
        )
        for part, seat, address in parts
    ]
    return Placement(pb.Start(hosts=hosts).SerializeToString(), {part.host: place for place, (part, _, _) in enumerate(parts)})


def start(order: StartOrder, hosts: Placement) -> OrderMessage:
    """The order to start or prepare a part."""
    message = pb.Order(**_about(order), start=pb.Start(**fields_of(order, pb.Start)))
    message.start.MergeFromString(hosts.encoded)
    return message


def kill(order: KillOrder) -> OrderMessage:
    """The order to end all of a part."""
    return pb.Order(**_about(order), kill=pb.Kill(leaves=order.leaves, grace=order.grace))


def order(effect: eff.Effect) -> OrderMessage:
    """The order for an effect that needs nothing from beside it. ValueError for the others."""
    about = _about(effect)
    match effect:
        case eff.ReleasePart():
            return pb.Order(**about, release=_release(effect.root, effect.ports))
        case eff.ChangeLimits():
            return pb.Order(**about, limits=limits(effect.limits))
        case eff.ChangeText():
            return pb.Order(**about, amend=_amend(dict(effect.values)))
        case eff.TellHosts():
            return pb.Order(**about, hosts=_hosts(effect))
        case eff.StopPart():
            return pb.Order(**about, stop=pb.Stop(**fields_of(effect, pb.Stop)))
        case eff.StartTask():
            return pb.Order(**about, start_task=pb.StartTask(**fields_of(effect, pb.StartTask)))
        case eff.FinishPart():
            return pb.Order(**about, finish=pb.Finish(**fields_of(effect, pb.Finish)))
        case eff.SignalPart():
            return pb.Order(**about, signal=_signal(effect))
    raise ValueError(type(effect).__name__)


def _about(order: eff.Effect | StartOrder | KillOrder) -> dict[str, Any]:
    return {"key": order.key, "attempt": order.attempt, "uid": order.uid}


@lru_cache(maxsize=8)
def _release(root: Endpoint, ports: eff.Ports) -> pb.Release:
    """Made once for all hosts of a large job."""
    return pb.Release(root=pb.Endpoint(**fields_of(root, pb.Endpoint)), ports=[pb.Ports(ports=one) for one in ports])


def _amend(values: Mapping[str, str]) -> pb.Amend:
    """Yes and no are kept as "1" and "" in the attempt's record, numbers in decimal."""
    fields = pb.Amend.DESCRIPTOR.fields_by_name
    read: dict[int, Callable[[str], Any]] = {FieldDescriptor.TYPE_BOOL: bool, FieldDescriptor.TYPE_INT32: int}
    return pb.Amend(**{name: read.get(fields[name].type, str)(value) for name, value in values.items()})


def _hosts(effect: eff.TellHosts) -> pb.Hosts:
    return pb.Hosts(
        **fields_of(effect, pb.Hosts),
        hosts=[pb.HostSlots(host=host, slots=slots, seat=seat) for host, slots, seat in effect.hosts],
        changed=[pb.HostSlots(host=host, slots=slots) for host, slots in effect.changed],
    )


def _signal(effect: eff.SignalPart) -> pb.Signal:
    pending = effect.pending
    fields = fields_of(pending, pb.Signal) | {"wish": pending.number, "reason": pending.reason.name}
    if pending.period < 0:
        del fields["period"]
    return pb.Signal(**fields)

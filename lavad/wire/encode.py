"""What agents are told: messages from effects, orders and answers, encoded where they are made.

Rule: a message is bytes from here on. What many hosts are told alike, as all hosts of a large job, is encoded once, and its bytes
are put into each of their messages: an embedded message is its bytes behind their number, and one that comes in two pieces is
both merged (https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from config.model.values import Limits
from lavad.core.cluster.containers import inside
from lavad.core.job.chunk import slots_in
from lavad.core.job.endpoint import Endpoint
from lavad.core.job.job import Part
from lavad.core.job.spec import JobText, Spec
from lavad.core.lang.cpus import Binding
from lavad.core.rules import effects as eff
from lavad.core.rules.run_settings import RunSettings
from lavad.wire.byname import fields_of, plain_names
from lavad.wire.packed import LARGE, packed
from lavad.wire.records import Holder, KillOrder, Peek, StartOrder, TextOrder, Welcome
from proto import agent_pb2 as pb

ToAgent: TypeAlias = bytes
"""A ToAgent of the wire."""
OrderMessage: TypeAlias = bytes
"""An Order."""
TextMessage: TypeAlias = bytes
"""A JobText."""
CommandFrame: TypeAlias = pb.CommandFrame
Fields: TypeAlias = dict[str, Any]
"""Of a message, by name."""
FEW = 32
"""GPUs, roles and CPUs on one host, of which a message is kept."""


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _tag(message: type[Message], field: str) -> bytes:
    return _varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)


_BATCH = _tag(pb.ToAgent, "orders")
_TEXT, _ORDER = _tag(pb.Orders, "texts"), _tag(pb.Orders, "orders")
_START, _HOSTS, _PACKED = _tag(pb.Order, "start"), _tag(pb.Order, "hosts"), _tag(pb.Order, "packed")


def _embedded(tag: bytes, *pieces: bytes) -> bytes:
    """A field that is the message of these pieces."""
    return b"".join((tag, _varint(sum(map(len, pieces))), *pieces))


# -- messages of a stream ------------------------------------------------------------------------------------------------


def welcome(record: Welcome) -> ToAgent:
    """The answer to a greeting."""
    return pb.ToAgent(welcome=pb.Welcome(**fields_of(record, pb.Welcome))).SerializeToString()


def batch(orders: Iterable[OrderMessage], texts: Iterable[TextMessage] = ()) -> ToAgent:
    """Orders that go out together, and the texts that they name."""
    pieces = [_embedded(_TEXT, text) for text in texts]
    pieces += [_embedded(_ORDER, order) for order in orders]
    return _embedded(_BATCH, *pieces)


def acks(ended: Iterable[str], serial: int = 0) -> ToAgent:
    """Reports up to ``serial`` are committed; ``ended``: the uids that the host may forget."""
    return pb.ToAgent(acks=pb.Acks(serial=serial, ended=ended)).SerializeToString()


def echo(sent: float, extended: float, shortest: float) -> ToAgent:
    """The answer to a heartbeat: parts live on for their leases from ``sent``, and at least ``extended`` seconds.

    ``shortest``: the shortest lease of the site, which agents of protocol 1 give all parts.
    """
    return pb.ToAgent(echo=pb.Echo(sent=sent, extended=extended, lease=max(shortest, extended))).SerializeToString()


def peek(record: Peek) -> ToAgent:
    """A question about a job's output."""
    return pb.ToAgent(peek=pb.Peek(**fields_of(record, pb.Peek))).SerializeToString()


def copies(jobs: Iterable[str]) -> ToAgent:
    """Jobs of which the host holds copies that are no longer needed."""
    return pb.ToAgent(copies=pb.Copies(jobs=jobs)).SerializeToString()


def work_folders(jobs: Iterable[int]) -> ToAgent:
    """Jobs that are over."""
    return pb.ToAgent(work_folders=pb.WorkFolders(jobs=jobs)).SerializeToString()


# -- texts of jobs -------------------------------------------------------------------------------------------------------


def job_text(order: TextOrder, of_class: TextMessage, env: TextMessage) -> TextMessage:
    """Everything about a job that is equal for all its parts and elements: ``class_text``, ``env_text``, and what is its own."""
    # what is empty is not written anyway, and is most of it
    own = {name: value for name, value in own_fields(order).items() if value}
    return b"".join((of_class, env, pb.JobText(**own).SerializeToString()))


def env_text(env: Mapping[str, str]) -> TextMessage:
    """A text with an environment and nothing else."""
    return pb.JobText(env=env).SerializeToString()


@lru_cache(maxsize=64)
def class_text(spec: Spec, settings: RunSettings) -> TextMessage:
    """What the texts of many jobs have in common beside it."""
    return pb.JobText(**class_fields(spec, settings)).SerializeToString()


def no_text(number: int) -> TextMessage:
    """An empty text under a number, in place of one that is not needed any more."""
    return pb.JobText(id=number).SerializeToString()


def class_fields(spec: Spec, settings: RunSettings) -> Fields:
    """Those that follow from the class of the job and the host; none of ``own_fields``, as an empty one would not replace it."""
    found: Fields = {}
    for record in (spec, spec.policy, settings):
        found |= fields_of(record, pb.JobText)
    if spec.checkpoint is not None:
        checkpoint = {f"checkpoint_{name}": getattr(spec.checkpoint, name) for name in spec.checkpoint.__struct_fields__}
        found |= {name: value for name, value in checkpoint.items() if name in pb.JobText.DESCRIPTOR.fields_by_name}
    found |= {
        "min_slots": spec.slots,
        "env_vars": dict(settings.env_vars),
        "limits": limits(settings.limits),
        "job_controls": [pb.Control(**fields_of(control, pb.Control)) for control in settings.job_controls],
    }
    return {name: value for name, value in found.items() if name not in _OF_TEXT}


_names = lru_cache(plain_names)
_OF_SETTINGS = _names(RunSettings, pb.JobText.DESCRIPTOR).keys()
_OF_TEXT = _names(JobText, pb.JobText.DESCRIPTOR).keys() - _OF_SETTINGS
_SETTLED = _names(JobText, pb.JobText.DESCRIPTOR).keys() & _OF_SETTINGS
"""What the settings say instead of the text, as a queue or an application profile may have it."""


def own_fields(order: TextOrder) -> Fields:
    text = order.text
    found = fields_of(text, pb.JobText)
    for name in _SETTLED:
        del found[name]
    roles = zip(order.spec.roles, text.roles, order.settings.role_limits, strict=True)
    data = base64.b64decode(text.input_data)
    if text.input_data and not data:
        # what was spooled is empty, which the message cannot say: the job reads that, and not what the file has now
        found["input"] = os.devnull
    return {
        **found,
        **fields_of(order, pb.JobText),
        "software": _software(_all_software(text.software, order.settings)),
        "roles": [
            pb.Role(
                **fields_of(role, pb.Role) | fields_of(own, pb.Role),
                env=own.env,
                limits=limits(role_limits),
                software=_software(own.software),
                late=bool(role.after),
            )
            for role, own, role_limits in roles
        ],
        "secrets": dict(text.secrets),
        "input_data": data,
    }


def _all_software(own: tuple[tuple[str, ...], ...], settings: RunSettings) -> tuple[tuple[str, ...], ...]:
    """A job's own with that of its profile or queue, the outermost first."""
    if settings.container:
        own = inside(own, settings.container)
    return (("djob_env_script", settings.djob_env_script), *own) if settings.djob_env_script else own


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
    order: bytes
    """An Order with that Start alone."""
    places: dict[str, int]
    """Host to its place among them."""


def placement(parts: Sequence[tuple[Part, int, str]]) -> Placement:
    """Of part, node index and the address of its host each."""
    hosts = []
    for part, node_index, address in parts:
        encoded = _kept_host if _names_few(part) else _host
        hosts.append(encoded(part.host, slots_in(part), part.gpus, part.roles, part.binds, node_index, address, _memory(part)))
    start = b"".join(hosts)
    places = {part.host: place for place, (part, _, _) in enumerate(parts)}
    return Placement(start, _embedded(_START, start) if len(start) >= LARGE else b"", places)


def _host(
    name: str,
    slots: int,
    gpus: tuple[str, ...],
    roles: tuple[tuple[int, int, int], ...],
    binds: tuple[Binding, ...],
    node_index: int,
    address: str,
    reserved_mem: float,
) -> bytes:
    """A Start with one host; several of these, one after the other, are one with all of them."""
    host = pb.HostSlots(
        host=name,
        slots=slots,
        gpus=gpus,
        node_index=node_index,
        address=address,
        reserved_mem=reserved_mem,
        roles=[pb.RoleSlots(role=role, first=first, count=count) for role, first, count in roles],
        binds=[pb.Bind(**fields_of(bind, pb.Bind)) for bind in binds],
    )
    return pb.Start(hosts=[host]).SerializeToString()


_kept_host = lru_cache(maxsize=4096)(_host)
"""Most jobs are alike. Where tasks are bound to many CPUs, one of their hosts takes up to 40 KiB, and few are alike."""


def _memory(part: Part) -> float:
    return next((amount for name, amount in part.reserved if name == "mem"), 0.0)


def _names_few(part: Part) -> bool:
    count = len(part.gpus) + len(part.roles)
    if part.binds:
        count += sum(len(bind.cpus) + len(bind.taken) + len(bind.nodes) for bind in part.binds)
    return count <= FEW


def start(order: StartOrder, hosts: Placement, unpacks: bool = False) -> OrderMessage:
    """The order to start or prepare a part; ``unpacks``: its agent reads what is packed."""
    own = pb.Start(sequence=order.sequence, name=order.name, token=order.token, chunk=order.chunk)
    if order.key_pem or order.holders:
        own.key_pem, own.cert_pem = order.key_pem, order.cert_pem
        own.holders.extend(pb.Holder(**fields_of(one, pb.Holder)) for one in order.holders)
    alike = _alike(
        order.text,
        order.two_phase,
        order.place,
        order.expires,
        order.lease,
        order.restart,
        order.go_back,
        order.restart_count,
    )
    # a message inside another takes protobuf longer than both by themselves
    if unpacks and hosts.order:
        return _named(order) + _embedded(_START, own.SerializeToString(), alike) + _alike_for_all(hosts.order, unpacks)
    return _named(order) + _embedded(_START, own.SerializeToString(), alike, hosts.encoded)


def _alike_for_all(alike: OrderMessage, unpacks: bool) -> OrderMessage:
    """What an Order says to all hosts of a job alike, packed where it is large and the agent reads that."""
    found = packed(alike) if unpacks else b""
    return _embedded(_PACKED, found) if found else alike


@lru_cache(maxsize=64)
def _alike(
    text: int, two_phase: bool, place: int, expires: float, lease: float, restart: int, go_back: bool, restart_count: int
) -> bytes:
    """A Start with what orders to start jobs of one class say alike, when they are sent together."""
    found = pb.Start(
        text=text,
        two_phase=two_phase,
        place=place,
        expires=expires,
        lease=lease,
        restart=restart,
        go_back=go_back,
        restart_count=restart_count,
    )
    return found.SerializeToString()


def kill(order: KillOrder) -> OrderMessage:
    """The order to end all of a part."""
    return _named(order) + pb.Order(kill=pb.Kill(**fields_of(order, pb.Kill))).SerializeToString()


def copy_to(effect: eff.CopyTo, record: Holder) -> OrderMessage:
    """The order to copy checkpoints to a host from now on."""
    return _named(effect) + pb.Order(copy_to=pb.Holder(**fields_of(record, pb.Holder))).SerializeToString()


def order(effect: eff.Effect, unpacks: bool = False) -> OrderMessage:
    """The order for an effect that needs nothing from beside it; ``unpacks`` as for ``start``. ValueError for the others."""
    match effect:
        case eff.ReleasePart():
            return _named(effect) + _alike_for_all(_release(effect.root, effect.ports), unpacks)
        case eff.TellHosts():
            return _named(effect) + _embedded(_HOSTS, _told(effect)) + _alike_for_all(_hosts(effect.hosts), unpacks)
    return _named(effect) + _what(effect).SerializeToString()


def _what(effect: eff.Effect) -> pb.Order:
    """An Order that says nothing else."""
    match effect:
        case eff.ChangeLimits():
            return pb.Order(limits=limits(effect.limits))
        case eff.ChangeText():
            return pb.Order(amend=_amend(dict(effect.values)))
        case eff.StopPart():
            return pb.Order(stop=pb.Stop(**fields_of(effect, pb.Stop)))
        case eff.StartTask():
            return pb.Order(start_task=pb.StartTask(**fields_of(effect, pb.StartTask)))
        case eff.EndTask():
            return pb.Order(end_task=pb.EndTask(**fields_of(effect, pb.EndTask)))
        case eff.FinishPart():
            return pb.Order(finish=pb.Finish(**fields_of(effect, pb.Finish)))
        case eff.CopyGeneration(generation=number):
            return pb.Order(copy_generation=number)
        case eff.SignalPart():
            return pb.Order(signal=_signal(effect))
    raise ValueError(type(effect).__name__)


def _named(order: eff.Effect | StartOrder | KillOrder) -> bytes:
    """An Order that does not say what is to be done."""
    return pb.Order(key=order.key, attempt=order.attempt, uid=order.uid).SerializeToString()


@lru_cache(maxsize=8)
def _release(root: Endpoint, ports: eff.Ports) -> bytes:
    """What an Order says to all hosts of a large job alike."""
    found = pb.Release(root=pb.Endpoint(**fields_of(root, pb.Endpoint)), ports=[pb.Ports(ports=one) for one in ports])
    return pb.Order(release=found).SerializeToString()


def _amend(values: Mapping[str, str]) -> pb.Amend:
    """Yes and no are kept as "1" and "" in the attempt's record, numbers in decimal.

    The record may be of an older lava, and name what agents are not told any more.
    """
    fields = pb.Amend.DESCRIPTOR.fields_by_name
    read: dict[int, Callable[[str], Any]] = {FieldDescriptor.TYPE_BOOL: bool, FieldDescriptor.TYPE_INT32: int}
    return pb.Amend(**{name: read.get(fields[name].type, str)(value) for name, value in values.items() if name in fields})


@lru_cache(maxsize=8)
def _hosts(hosts: eff.Hosts) -> bytes:
    """An Order with the hosts of a job alone, which all of them are told."""
    told = [pb.HostSlots(host=host, slots=slots, node_index=node_index) for host, slots, node_index in hosts]
    return pb.Order(hosts=pb.Hosts(hosts=told)).SerializeToString()


def _told(effect: eff.TellHosts) -> bytes:
    """A Hosts with the rest."""
    changed = [pb.HostSlots(host=host, slots=slots) for host, slots in effect.changed]
    return pb.Hosts(**fields_of(effect, pb.Hosts), changed=changed).SerializeToString()


def _signal(effect: eff.SignalPart) -> pb.Signal:
    pending = effect.pending
    fields = fields_of(pending, pb.Signal) | {"reason": pending.reason.name}
    if pending.period < 0:
        del fields["period"]
    return pb.Signal(**fields)

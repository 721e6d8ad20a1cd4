"""An order to start says all that its record says, whichever of its fields are encoded once for many."""

from __future__ import annotations

import tracemalloc

from msgspec.structs import replace

from lavad.core.job.job import Part
from lavad.core.lang.cpus import Binding
from lavad.wire import encode
from lavad.wire.byname import fields_of
from lavad.wire.records import Holder, StartOrder
from proto import agent_pb2 as pb

ORDER = StartOrder(
    key=7 << 32 | 3, attempt=2, uid="u1", sequence=9, text=4, two_phase=True, place=1, expires=77.5, lease=60.0, restart=5,
    go_back=True, restart_count=1, name="a[7]", token="t", key_pem=b"key", cert_pem=b"cert",
    holders=(Holder("h3", "10.0.0.3", 77, "print", "token", (1, 2)),),
)  # fmt: skip
HOSTS = encode.placement([(Part(host="h1", slots=1), 0, "10.0.0.1"), (Part(host="h2", slots=2), 1, "10.0.0.2")])


def _read(order: StartOrder) -> pb.Order:
    return pb.Order.FromString(encode.start(order, HOSTS))


def test_every_field_is_said() -> None:
    read = _read(ORDER)
    assert (read.key, read.attempt, read.uid) == (ORDER.key, 2, "u1")
    for name, value in fields_of(ORDER, pb.Start).items():
        assert getattr(read.start, name) == value, name
    assert [(one.host, one.port, list(one.generations)) for one in read.start.holders] == [("h3", 77, [1, 2])]
    assert [(host.host, host.slots) for host in read.start.hosts] == [("h1", 1), ("h2", 2)]


def test_orders_that_are_encoded_after_each_other_differ_in_what_they_differ_in() -> None:
    other = replace(ORDER, sequence=10, name="a[8]", token="t8", key_pem=b"", cert_pem=b"", holders=(), restart=-1)
    _read(ORDER)
    read = _read(other).start
    assert (read.sequence, read.name, read.token, read.restart, read.text) == (10, "a[8]", "t8", -1, 4)
    assert (read.key_pem, read.cert_pem, list(read.holders)) == (b"", b"", [])


def test_each_host_has_the_memory_that_is_reserved_there() -> None:
    """Alike but for that, one after the other."""
    parts = [Part(host="h1", slots=1, reserved=reserved) for reserved in ((("mem", 100.0),), (("lic", 1.0), ("mem", 50.0)), ())]
    told = [pb.Start.FromString(encode.placement([(part, 0, "10.0.0.1")]).encoded).hosts[0].reserved_mem for part in parts]
    assert told == [100.0, 50.0, 0.0]


def test_hosts_on_which_many_tasks_are_bound_are_not_kept() -> None:
    def told(host: int, bound: int) -> pb.Start:
        binds = tuple(Binding(cpus=(at, at + 1000), taken=(host,)) for at in range(bound))
        part = Part(host=f"node{host}", slots=max(bound, 1), binds=binds)
        return pb.Start.FromString(encode.placement([(part, 0, f"10.0.0.{host}")]).encoded)

    assert [len(bind.cpus) for bind in told(1, 1000).hosts[0].binds] == [2] * 1000
    tracemalloc.start()
    try:
        for host in range(100):
            assert len(told(host, 1000).hosts) == 1
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    assert [told(3, bound).hosts[0].slots for bound in (0, 1, 0, 1)] == [1, 1, 1, 1]

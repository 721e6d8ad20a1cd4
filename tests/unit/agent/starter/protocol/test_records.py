"""Orders, reports and parts as JSON objects: what goes over the wire comes back, whatever version the other side has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent.starter.protocol import orders, part, reports
from agent.starter.protocol.answers import Data
from agent.starter.protocol.codec import Json, ProtocolError, text, write_over
from agent.starter.protocol.orders import Deliver, Finish, Go, JobHosts, NumberedHost, Renew, Scope, Signal, StartTask
from agent.starter.protocol.part import LinkSpec, OutputFile, PartSpec, PortsSpec, TaskSpec, User
from agent.starter.protocol.reports import (
    Address,
    End,
    Ended,
    EndedTask,
    FirstFailure,
    HostEnd,
    HostUse,
    PartState,
    PartStatus,
    Prepared,
    Root,
    Started,
    TaskEnded,
    Wrote,
)

ME = User("me", 7, 8, (8, 9))
END = End(
    status=256,
    at=2.0,
    started=1.0,
    utime=0.5,
    stime=0.25,
    maxrss_kb=100,
    tasks=(EndedTask(0, 5, None, 0.5, 0.25, 100, 2.0),),
    first=FirstFailure(0, 256, "rank 0 failed"),
    lease=False,
    others=(HostEnd("h2", 1.0, 2.0, 3, 4, HostUse(mem=5)), HostEnd("h3", 0.0, 0.0, 0, 0, None)),
)


def wire(obj: Json) -> Json:
    """As it comes out of a frame."""
    found: Json = json.loads(json.dumps(obj))
    return found


ORDERS: list[orders.Order] = [
    Go("u", Root("10.0.0.1", 4, ((1, 2), ()))),
    Go("u", Root("h", 5)),
    Go("u"),
    Signal(("u",), 10, Scope.CATCHING, 2.5),
    Renew(3.5),
    Renew(3.5, ("u",)),
    StartTask("u", 3, 2, 1.5),
    Finish("u", FirstFailure(1, 9, "why")),
    JobHosts("u", (NumberedHost(0, "a"), NumberedHost(4, "b"))),
    Deliver("u", ME, "/out", "/kept", text="t", mkdir=True),
]
STATUS = PartStatus("u", 1, 2, PartState.RUNNING, 5, 6, None, news=(TaskEnded("u", 0, 1, 5, 9, 2.0),))
REPORTS = [
    Prepared("u", Address("h", 1, (2, 3)), "- 0 name"),
    Started("u", (reports.RunningTask(0, 5, 6),), 1.5, 4),
    Ended("u", END, True),
    Data(3, b"\0\xff", 2),
    Wrote(uid="u", error="full"),
    reports.Hello("boot", 1, 2, (STATUS, PartStatus("v", 1, 1, PartState.GONE, None, None, END))),
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda one: type(one).__name__)
def test_an_order_comes_back(order: orders.Order) -> None:
    assert orders.read_order(wire(orders.write_order(order))) == order


@pytest.mark.parametrize("report", REPORTS, ids=lambda one: type(one).__name__)
def test_a_report_comes_back(report: reports.Report) -> None:
    assert reports.find_report(wire(reports.write_report(report))) == report


def test_the_wire_of_other_versions_is_kept() -> None:
    """A starter that runs reads these very keys."""
    assert orders.write_order(ORDERS[0]) == {"do": "go", "uid": "u", "root": ["10.0.0.1", 4, ((1, 2), ())]}
    assert wire(orders.write_order(JobHosts("u", (NumberedHost(4, "b"),)))) == {"do": "hosts", "uid": "u", "hosts": [[4, "b"]]}
    assert orders.write_order(Signal(("u",), 10, Scope.CATCHING, 2.5))["scope"] == "catching"
    delivered = orders.write_order(Deliver("u", ME, "/out", "/kept"))
    assert (delivered["from"], "from_error" in delivered) == ("/kept", False)
    assert wire(reports.write_report(Prepared("u", Address("h", 1, (2,)))))["addr"] == ["h", 1, [2]]
    task = wire(part.write_part(PartSpec(tasks=(TaskSpec(0, {}),)), part.NOTHING, "t"))
    assert task == {"t": "t", "tasks": [{"rank": 0, "env": {}}]}


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults() -> None:
    assert orders.read_order({"do": "go", "uid": "u", "new": 1}) == Go("u")
    assert orders.read_order({"do": "task", "uid": "u", "rank": 1, "number": 2, "delay": None}) == StartTask("u", 1, 2)
    assert orders.read_order({"do": "go", "uid": "u", "root": ["h"]}) == Go("u", Root("h", 0))
    assert reports.find_report({"is": "of tomorrow", "uid": "u"}) is None


@pytest.mark.parametrize(
    "order",
    [
        {"do": "of tomorrow"},
        {"do": []},
        {},
        {"do": "signal", "uids": ["u"], "sig": "9"},
        {"do": "signal", "uids": 5, "sig": 9},
        {"do": "go", "uid": "u", "root": []},
        {"do": "hosts", "uid": "u", "hosts": [[1]]},
        {"do": "signal", "uids": ["u"], "sig": 9, "scope": "nobody"},
    ],
    ids=str,
)
def test_nonsense_is_refused(order: Json) -> None:
    with pytest.raises(ProtocolError):
        orders.read_order(order)


def shared(**fields: Any) -> PartSpec:
    return PartSpec(user=ME, env={"A": "1"}, pre_exec="prepare", rlimits={"CPU": (1, None)}, **fields)


def test_a_part_is_its_template_and_what_differs() -> None:
    template = shared(argv=("a", "b"))
    one = template._replace(
        uid="u",
        key=1 << 32 | 7,
        attempt=2,
        env={"B": "2"},
        pre_exec=None,
        input=b"\0in",
        stdout=OutputFile("/out", append=True),
        link=LinkSpec(1, "cert", "key", 2),
        ports=PortsSpec(1, 2, 0, 20000, 20000, 12000),
        tasks=(),
    )
    sent = wire(part.write_part(one, template, "7"))
    assert "user" not in sent
    assert (part.uid_of(sent), part.template_of(sent)) == ("u", "7")
    read = part.read_template(wire(write_over(part.NOTHING, template)))
    assert read == template
    assert part.read_part(read, sent) == one
    assert part.read_part(read, sent).rlimits is read.rlimits


def test_a_part_must_say_whose_it_is() -> None:
    with pytest.raises(ProtocolError, match="key"):
        part.read_part(shared(), {"uid": "u", "attempt": 1})
    with pytest.raises(ProtocolError, match="user"):
        part.read_part(part.NOTHING, {"uid": "u", "attempt": 1, "key": 1})
    with pytest.raises(ProtocolError, match="env"):
        part.read_part(shared(), {"uid": "u", "attempt": 1, "key": 1, "env": 5})


def test_text_is_what_json_makes_of_it_without_blanks() -> None:
    samples: tuple[object, ...] = (
        "a\udce4\n\u20ac\U0001f600",
        1.5,
        1e-7,
        float("nan"),
        True,
        None,
        {},
        [],
        {"a": [{"b": (1, -2.0)}, {1: "x"}], "": None},
    )
    for one in samples:
        assert text(one) == json.dumps(one, separators=(",", ":")).encode()

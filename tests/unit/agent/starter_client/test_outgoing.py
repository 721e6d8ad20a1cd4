"""Orders on their way to the starter: in order, each template once, split by bytes, and no part that keeps another."""

from __future__ import annotations

from typing import Any, cast

import pytest

from agent.starter.protocol import part
from agent.starter.protocol.codec import parse
from agent.starter.protocol.orders import Kill, Order, Start, read_order, write_order
from agent.starter.protocol.part import NOTHING, JobFile, PartSpec
from agent.starter.protocol.version import PROTOCOL
from agent.starter.wire.frames import MAX_FRAME
from agent.starter_client import outgoing, templates
from agent.starter_client.outgoing import Outgoing
from agent.starter_client.starterlink import StarterLink, encode

ME = part.User("me", 1, 1, ())
TEMPLATE = NOTHING._replace(user=ME, env={"A": "1"}, umask=0o077, script="#!/bin/sh\ntrue\n")


class Link:
    """What a starter reads from its socket."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.largest = 0

    def put(self, order: Order) -> None:
        body = encode(write_order(order))
        self.largest = max(self.largest, len(body))
        self.got.append(read_order(parse(body)))

    def flush(self) -> None:
        pass

    def starts(self) -> list[Start]:
        return [order for order in self.got if isinstance(order, Start)]


def connected(protocol: int = PROTOCOL) -> tuple[Outgoing, Link]:
    out, link = Outgoing(), Link()
    out.up(cast(StarterLink, link), 0, protocol)
    return out, link


def of(template: PartSpec, uid: str, **own: Any) -> PartSpec:
    return template._replace(uid=uid, key=7, attempt=1, **own)


def test_a_start_goes_before_what_was_ordered_for_it_while_no_starter_was_there() -> None:
    out, link = Outgoing(), Link()
    out.start(1, NOTHING, of(TEMPLATE, "u"))
    out.put(Kill(("u",)))
    out.up(cast(StarterLink, link), 0, PROTOCOL)
    assert [type(order) for order in link.got] == [Start, Kill]


def test_parts_of_one_text_share_a_template_that_is_sent_once() -> None:
    out, link = connected()
    parts = [of(TEMPLATE, uid, env={"B": uid}, jobfile=JobFile(f"/{uid}", remove=True)) for uid in ("u", "v", "w")]
    for turn in (parts[:2], parts[2:]):
        for one in turn:
            out.start(1, TEMPLATE, one)
        out.flush()
    first, second = link.starts()
    [(name, fields)] = first.templates.items()
    assert second.templates == {}
    assert first.seq < second.seq
    owns = [*first.parts, *second.parts]
    assert [part.template_of(own) for own in owns] == [name] * 3
    assert [part.read_part(part.read_template(fields), own) for own in owns] == parts
    assert "true" not in str(owns)


def test_a_new_connection_gets_all_templates_again() -> None:
    out, link = connected()
    out.start(1, TEMPLATE, of(TEMPLATE, "u"))
    out.flush()
    out.down()
    out.up(cast(StarterLink, link), 0, PROTOCOL)
    out.start(2, TEMPLATE, of(TEMPLATE, "v"))
    out.flush()
    assert [len(start.templates) for start in link.starts()] == [1, 1]


def test_a_starter_that_keeps_no_template_gets_all_with_each_order() -> None:
    out, link = connected(1)
    for uid in ("u", "v"):
        out.start(1, TEMPLATE, of(TEMPLATE, uid, jobfile=JobFile(f"/{uid}")))
        out.flush()
    for start in link.starts():
        [own] = start.parts
        read = part.read_part(part.read_template(start.templates[part.template_of(own)]), own)
        assert read.jobfile is not None
        assert read.jobfile.text == TEMPLATE.script


@pytest.mark.parametrize("protocol", [1, PROTOCOL])
def test_frames_are_split_by_bytes(protocol: int) -> None:
    out, link = connected(protocol)
    scripts = [TEMPLATE._replace(script=f"{number}" * (14 << 20)) for number in range(4)]
    for number in range(16):
        template = scripts[number // 4]
        out.start(number, template, of(template, f"u{number}", jobfile=JobFile(f"/{number}")))
    out.flush()
    assert link.largest < MAX_FRAME
    assert [own["uid"] for start in link.starts() for own in start.parts] == [f"u{number}" for number in range(16)]
    numbers = [start.seq for start in link.starts()]
    assert numbers == sorted(set(numbers))
    if protocol == PROTOCOL:
        assert sum(len(start.templates) for start in link.starts()) == 4


def test_a_starter_keeps_templates_up_to_a_number_of_bytes() -> None:
    out, link = connected()
    scripts = [TEMPLATE._replace(script="x" * (templates.KEPT_BYTES * 2 // 5)) for _ in range(3)]
    for template in (*scripts, scripts[0]):
        out.start(1, template, of(template, "u"))
        out.flush()
    known: dict[str, Any] = {}
    for start in link.starts():
        known |= start.templates
        assert {part.template_of(own) for own in start.parts} <= known.keys()
        for name in start.drop:
            del known[name]
        assert len(known) <= 2


class Odd:
    """What JSON has no word for."""


@pytest.mark.parametrize(
    ("value", "said"), [(cast(str, Odd()), "TypeError("), ("x" * (outgoing.LARGEST_PART + 1), "its description has ")]
)
def test_a_part_that_cannot_be_encoded_keeps_no_other(value: str, said: str) -> None:
    out, link = connected()
    for one in (of(TEMPLATE, "u"), of(TEMPLATE, "bad", env={"A": value}), of(TEMPLATE, "v")):
        out.start(1, TEMPLATE, one)
    out.flush()
    assert [own["uid"] for start in link.starts() for own in start.parts] == ["u", "v"]
    [(uid, why)] = out.failed()
    assert uid == "bad"
    assert why.startswith(said)
    assert out.failed() == []


def test_a_template_that_is_too_large_is_sent_to_nobody() -> None:
    out, link = connected()
    large = TEMPLATE._replace(script="x" * (templates.LARGEST + 1))
    for template, uid in ((large, "bad"), (TEMPLATE, "good"), (large, "bad")):
        out.start(1, template, of(template, uid))
    out.flush()
    assert [own["uid"] for start in link.starts() for own in start.parts] == ["good"]
    assert [uid for uid, _ in out.failed()] == ["bad", "bad"]

"""Templates of parts at a real starter: kept for a connection, and refused where no shepherd can be sent them."""

from __future__ import annotations

import json
from typing import Any

from agent.starter.protocol.version import PROTOCOL
from tests.support.daemons.starters import ME, Rig
from tests.support.wait import SLOW


def test_a_template_that_no_shepherd_can_be_sent_refuses_its_parts_and_no_other(rig: Rig) -> None:
    """Within the limit as UTF-8, over it as ASCII; the starter and its connection go on."""
    large = {"env": {"A": "\u00e9" * (12 << 20)}, "user": ME}
    parts = [
        {"uid": uid, "key": 1, "attempt": 1, "t": name, "argv": ["true"]} for uid, name in (("u", "l"), ("v", "s"), ("w", "?"))
    ]
    order = {"do": "start", "seq": rig.seq + 1, "parts": parts, "templates": {"l": large, "s": {"user": ME}}}
    assert rig.sock is not None
    body = json.dumps(order, ensure_ascii=False).encode()
    rig.sock.settimeout(20 * SLOW)
    rig.sock.sendall(len(body).to_bytes(4, "big") + body)
    assert rig.report("u", "refused")["code"] == "bad"
    assert "its template has" in rig.report("u", "refused")["reason"]
    assert rig.report("w", "refused")["reason"] == "part w: its template is not there"
    rig.gone("v")
    assert rig.process is not None
    assert rig.process.poll() is None


def test_a_template_is_known_as_long_as_the_connection_lasts(rig: Rig) -> None:
    assert rig.hello["protocol"] == PROTOCOL
    script = {"user": ME, "script": "#!/bin/sh\nexit 7\n", "cwd": str(rig.folder)}

    def begin(uid: str, templates: dict[str, Any], drop: tuple[str, ...] = ()) -> None:
        path = str(rig.folder / uid)
        own = {"uid": uid, "key": 1, "attempt": 1, "t": "1", "argv": ["/bin/sh", path], "jobfile": {"path": path}}
        rig.seq += 1
        rig.send({"do": "start", "seq": rig.seq, "parts": [own], "templates": templates, "drop": drop})

    begin("a", {"1": script})
    begin("b", {}, ("1",))
    assert [rig.end(uid)["status"] >> 8 for uid in ("a", "b")] == [7, 7]
    begin("c", {})
    assert rig.report("c", "refused")["reason"] == "part c: its template is not there"
    begin("d", {"1": script})
    rig.end("d")
    rig.connect()
    begin("e", {})
    assert rig.report("e", "refused")["reason"] == "part e: its template is not there"


def test_shepherds_drop_large_templates_and_get_them_again(rig: Rig) -> None:
    """Two of 3 MB are more than a shepherd keeps."""
    templates = {
        name: {"user": ME, "cwd": str(rig.folder), "script": f"#!/bin/sh\nexit {name}\n#" + "x" * (3 << 20)} for name in "12"
    }
    for number in range(6):
        name, uid = "12"[number % 2], f"u{number}"
        path = str(rig.folder / uid)
        own = {
            "uid": uid,
            "key": 1,
            "attempt": 1,
            "t": name,
            "argv": ["/bin/sh", path],
            "jobfile": {"path": path, "remove": True},
        }
        rig.order(own, templates=templates if not number else None)
        assert rig.end(uid)["status"] >> 8 == int(name)
        rig.gone(uid)
    assert len(rig.shepherds()) == 1

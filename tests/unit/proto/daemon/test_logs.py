"""What users write cannot make a line of a daemon's log, nor colour it."""

from __future__ import annotations

import io
import json
import logging
import re

import pytest

from agent.starter.system.stdio import one_line
from proto.daemon.logs import INDENT, LONGEST, OneLine, Structured, escaped, log_as

HOSTILE = "a\n2026-11-22 15:00:00 INFO obeys\r\x1b[31mred\x1b[0m\x9b31m\u202eback\u2028next\udcff\0end"


@pytest.mark.parametrize("show", [escaped, one_line])
def test_a_text_is_one_plain_line(show: object) -> None:
    assert callable(show)
    shown = show(HOSTILE)
    assert shown.isprintable()
    assert shown.startswith("a\\n2026-11-22 15:00:00 INFO obeys\\r\\x1b[31mred")
    assert shown.endswith("\\u2028next\\udcff\\x00end")
    assert show("plain é 漢 'text'") == "plain é 漢 'text'"
    assert len(show("x" * 1_000_000)) < LONGEST + 100


def test_records_and_tracebacks() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLine("%(levelname)s %(message)s"))
    log = logging.Logger("test")
    log.addHandler(handler)
    log.info("job %s is refused: %s", HOSTILE, "no\nuser")
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("it failed")
    first, second, *rest = stream.getvalue().splitlines()
    assert re.fullmatch(r"INFO job a\\n2026.* is refused: no\\nuser", first)
    assert second == "ERROR it failed"
    assert rest
    assert all(line.startswith(INDENT) and line.isprintable() for line in rest)


def test_a_record_as_an_object() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Structured())
    log = logging.Logger("lavad.rpc")
    log.addHandler(handler)
    log.warning("job %s of %s", 7, HOSTILE)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        log.exception("it failed")
    log.info("x" * 100_000)
    lines = stream.getvalue().splitlines()
    first, second, third = map(json.loads, lines)
    assert {key: first[key] for key in ("level", "daemon", "message", "template")} == {
        "level": "WARNING",
        "daemon": "lavad.rpc",
        "message": f"job 7 of {HOSTILE}",
        "template": "job %s of %s",
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", first["time"])
    assert second["exception"].startswith("Traceback")
    assert "exception" not in first
    assert len(third["message"]) < LONGEST + 100
    assert all(line.isascii() and line.isprintable() for line in lines)


@pytest.mark.parametrize(("word", "kind"), [("JSON", Structured), ("json", Structured), ("", OneLine), ("TEXT", OneLine)])
def test_the_format_of_a_configuration(word: str, kind: type[logging.Formatter]) -> None:
    root = logging.getLogger()
    before, root.handlers = root.handlers, [logging.StreamHandler(io.StringIO())]
    root.handlers[0].setFormatter(OneLine())
    try:
        log_as(word)
        assert type(root.handlers[0].formatter) is kind
    finally:
        root.handlers = before

"""The page of fields: those that the commands have, each with a text, and texts of no others."""

from __future__ import annotations

import re
from collections.abc import Mapping

from config.help.texts import read_texts
from docs.generate import field_texts, fields
from lavad.queries.frame.columns import Field
from lavad.queries.hosts import bhosts
from lavad.queries.jobs import bjobs_custom
from lavad.queries.queues import bqueues, busers

KNOWN: dict[str, Mapping[str, Field]] = {
    "bjobs": bjobs_custom.FIELDS,
    "bhosts": bhosts.FIELDS,
    "bqueues": bqueues.FIELDS,
    "busers": busers.FIELDS,
    "lshosts": fields.lshosts_fields(),
    "lsload": fields.lsload_fields(),
}


def test_each_field_and_other_name_has_its_place() -> None:
    page = fields.page()
    for command, known in KNOWN.items():
        part = page.partition(f"\n## {command}\n")[2].partition("\n## ")[0]
        assert known.keys() - {*re.findall(r"`([^` ]+)`", part)} == set()
    assert "| `jobid` | `id` | 7 |" in page
    assert "| `max_runlimit` | `runlimit` | 12 | RUNLIMIT: the most that jobs may ask for |" in page
    assert "| `nice` |  | 6 | NICE: the nice value of its jobs |" in page
    assert "`energy`" in page.partition("always `-`: ")[2].partition("\n")[0]


def test_no_text_is_of_a_field_that_is_not_there() -> None:
    texts = [getattr(field_texts, command.upper()) for command in KNOWN]
    for command, block in zip(KNOWN, texts, strict=True):
        assert read_texts(block).keys() <= {field.name for field in KNOWN[command].values()}, command

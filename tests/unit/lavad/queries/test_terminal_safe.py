"""What one user writes into a job does nothing to the terminals of those who list it, and makes no rows of its own."""

from __future__ import annotations

import pytest

from lavad.core import events as ev
from lavad.queries.frame.terminal import shown
from tests.support.worlds.query_cluster import ADMIN, ALICE, QueryCluster, at

EVIL = "x\u202e\u2028\u2066\x1b]0;title\x07\x1b[2J\r0 root DONE\x9b31m\udc9b\x7f"


@pytest.mark.parametrize("options", [{}, {"w": True}, {"l": True}, {"o": "command job_description"}, {"UF": True}])
def test_no_control_character_is_in_a_listing(options: dict[str, object]) -> None:
    c = QueryCluster()
    c.submit(1, name=EVIL, text={"command": EVIL, "description": EVIL})
    text, _, _ = c.ask("bjobs", "1", caller=ADMIN, **options)
    assert text.isascii()
    assert not [letter for letter in text if letter not in "\t\n" and not letter.isprintable()]


def test_several_lines_of_a_command_are_one_line_of_a_table() -> None:
    c = QueryCluster()
    c.submit(1, name="job", text={"command": "one\ntwo\n"})
    assert c.ask("bjobs", "1", o="jobid command", noheader=True)[0].split() == ["1", "one;two"]


def test_the_owner_gets_the_own_script_as_it_is() -> None:
    c = QueryCluster()
    c.submit(1, text={"command": "x", "script": f"#!/bin/sh\r\n{EVIL}\n"})
    assert c.ask("bjobs", "1", caller=ALICE, script=True)[0] == f"#!/bin/sh\r\n{EVIL}\n"


@pytest.mark.parametrize("text", ["", "a\tb\nc", "größer 数", "\udcff"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert shown(text) == text


def test_a_newline_in_a_path_begins_no_line_of_a_long_listing() -> None:
    """It could look like what has become of the job."""
    c = QueryCluster()
    c.submit(1, text={"output": "x\nFri Nov 20 11:40:00: Done successfully", "cwd": "/a\nb", "pre_exec": "a\nb"})
    c.feed(ev.JobModified(at=at("11:34:00"), key=1, spec=1, name="sleep 1", by="alice", changes=("Output file <a\nb>",)))
    bjobs, unformatted, bhist = c.ask("bjobs", "1", l=True), c.ask("bjobs", "1", UF=True), c.ask("bhist", "1", l=True)
    for shown_text, _, _ in (bjobs, unformatted, bhist):
        assert "\nFri Nov 20 11:40:00" not in shown_text
        assert "<x;Fri" in "".join(line.strip() for line in shown_text.splitlines()).replace(" ", "")
    assert "Output file <a;b>;\n" in bhist[0]

"""Files of a job that get other names while it runs."""

from __future__ import annotations

import pytest

from agent.launch import outputs
from agent.launch.outputs import OutputPaths
from proto import agent_pb2 as pb
from tests.unit.agent.launch.test_order_to_part import ALICE, site


def paths(output: str, error: str) -> OutputPaths:
    return outputs.output_paths(pb.JobText(output=output, error=error), 7, ALICE, site())


@pytest.mark.parametrize(
    ("had", "gets", "output", "error"),
    [
        (("o", "e"), ("new", "e2"), "new", "e2"),
        (("o", ""), ("new", ""), "new", ""),
        (("", "e"), ("new", "e2"), "new", "e"),
        (("", "e"), ("", "e"), "", "e"),
        (("", ""), ("new", ""), "new", ""),
        (("/dev/null", "e"), ("new", "e2"), "/dev/null", "e"),
    ],
)
def test_what_a_part_writes_itself_keeps_its_name(had: tuple[str, str], gets: tuple[str, str], output: str, error: str) -> None:
    """Without -o its standard error is in its file at once, and its output with the agent until it ends."""
    before = paths(*had)
    after = outputs.delivered_to(before, paths(*gets))
    assert (after.output, after.error) == (output, error)
    assert (after.stdout, after.stderr or None) == (before.kept or output, before.kept_error or error or None)

"""What a part is started with: its template and its own."""

from __future__ import annotations

from agent.starter.process import spec
from agent.starter.protocol.part import NO_RANK, TaskSpec


def test_environment_of_a_part_is_merged_and_marked() -> None:
    template = spec.Template({"env": {"A": "1", "B": "1"}, "argv": ["x"], "title": "t"})
    one = spec.Spec(template, {"uid": "u", "env": {"B": "2", "bad=name": "x", "nul": "a\0b"}, "argv": None})
    assert one.env == {"A": b"A=1", "B": b"B=2", "LAVA_ATTEMPT": b"LAVA_ATTEMPT=u"}
    assert one.part.argv is None
    assert one.tasks == (TaskSpec(NO_RANK, {}),)
    assert template.env == {"A": b"A=1", "B": b"B=1"}

"""Limits of a job beside the hard ones of the starter."""

from __future__ import annotations

import resource

from agent.starter.system import rlimits


def test_limits_are_clamped_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert rlimits.clamp({"NOFILE": (soft, -1), "NONSENSE": (1, 1)}) == rlimits.NO_CHANGE
    limits = rlimits.clamp({"NOFILE": (hard + 1, hard + 1)})
    assert limits.wanted == ([] if soft == hard else [(resource.RLIMIT_NOFILE, hard, hard)])
    lowered = rlimits.clamp({"NOFILE": (10, 20)})
    assert lowered == rlimits.Limits([(resource.RLIMIT_NOFILE, 10, 20)], [(resource.RLIMIT_NOFILE, soft, hard)], True)
    assert rlimits.clamp({"NOFILE": (10, -1)}).in_child is False

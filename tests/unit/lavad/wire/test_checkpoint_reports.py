"""What an agent reports of a checkpoint, as the master reads it."""

from __future__ import annotations

import pytest

from lavad.core.job.reports import CheckpointReport
from lavad.wire import decode
from proto import agent_pb2 as pb


@pytest.mark.parametrize("newest", [None, -1, 0, 3])
def test_the_newest_generation_is_known_only_where_it_is_told(newest: int | None) -> None:
    """One that could not be made says nothing of those before it."""
    told = pb.Checkpointed(generation=-1, why="the disk is full", newest=newest)
    found = decode.report(pb.Report(key=1, attempt=1, uid="u", checkpointed=told), "h1")
    assert isinstance(found, CheckpointReport)
    assert (found.why, found.newest) == ("the disk is full", newest)

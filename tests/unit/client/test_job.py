"""What can be asked about a job, of whichever time zone the cluster is, and of an array."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lava_client.cluster import Cluster
from lava_client.job import OfJob, Usage
from tests.unit.cli.scripted_master import Frame, ScriptedMaster

STARTS = 1795799733.5
"""17:15:33 UTC on 27 November 2026, as the master's host has it in the text of ``lava why``."""
WHY = "Job <7>\n\nEstimated start: from Fri Nov 27 17:15:33 to Fri Nov 27 17:15:33\n"


class Asked(OfJob):
    """A job that is not followed."""

    def __init__(self, session: Cluster, id: str) -> None:
        self._session, self._id = session, id

    @property
    def id(self) -> str:
        return self._id


@contextmanager
def job(folder: Path, *rows: dict[str, str]) -> Iterator[Asked]:
    """Job 7, of which bjobs shows these rows; what waits has its start."""

    def answered(frame: Frame) -> list[Frame]:
        said: dict[str, Any] = {
            "bjobs": json.dumps({"RECORDS": [{"JOBID": "7", **row} for row in rows]}),
            "why": WHY,
            "api": json.dumps({"latest": STARTS if frame["words"][1:] in (["7"], ["7[2]"]) else None}),
        }
        return [{"out": said[frame["command"]], "exit": 0}]

    environ = {"LAVA_SOCKET": str(folder / "s"), "LSF_ENVDIR": str(folder)}
    with ScriptedMaster(folder / "s", answered), Cluster(environ=environ, timeout=0.0) as cluster:
        yield Asked(cluster, "7")


@pytest.mark.parametrize(
    ("rows", "is_known"),
    [
        ([{"JOBINDEX": "0", "STAT": "PEND"}], True),
        ([{"JOBINDEX": "1", "STAT": "RUN"}, {"JOBINDEX": "2", "STAT": "PEND"}, {"JOBINDEX": "3", "STAT": "PEND"}], True),
        ([{"JOBINDEX": "0", "STAT": "RUN"}], False),
        ([], False),
    ],
)
def test_when_a_job_will_have_started_is_the_same_moment_in_any_time_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, str]], is_known: bool
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        with job(tmp_path, *rows) as asked:
            at = asked.eta()
    finally:
        monkeypatch.undo()
        time.tzset()
    if is_known:
        assert isinstance(at, datetime)
        assert (at.timestamp(), at.utcoffset()) == (STARTS, timedelta(hours=9))
    else:
        assert at is None


def test_an_array_has_used_what_its_elements_have(tmp_path: Path) -> None:
    row = {"CPU_USED": "2.5 second(s)", "MEM": "1 Mbytes", "SLOTS": "2", "GPU_ALLOC": ""}
    first = {**row, "RUN_TIME": "10 second(s)", "MAX_MEM": "3 Mbytes", "EXEC_HOST": "2*h1"}
    second = {**row, "RUN_TIME": "20 second(s)", "MAX_MEM": "1 Gbytes", "EXEC_HOST": "h1:h2", "GPU_ALLOC": "h2:0"}
    waits = {**row, "RUN_TIME": "", "CPU_USED": "", "MEM": "", "MAX_MEM": "", "EXEC_HOST": ""}
    with job(tmp_path, first, second, waits) as asked:
        assert asked.usage() == Usage(30.0, 5.0, 2 << 20, 1 << 30, 6, ("h1", "h2"), "h2:0")

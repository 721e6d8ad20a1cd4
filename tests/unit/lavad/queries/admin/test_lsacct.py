"""lsacct: the tasks of a log that LSF has written."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import pytest

from tests.support.worlds.query_cluster import QueryCluster, at

TASKS = (
    '812 "alice" 0 {t} {e} "ol1" "ol2" "/home/alice" "make all" 1.500000 0.500000 2048.0 -1 -1 -1\n'
    '813 "bob" 256 {t} {e} "ol1" "ol3" "/home/bob" "false" 0.100000 0.000000 2048.0 -1 -1 -1\n'
    '814 "alice" 0 cut\n'
).format(t=int(at("11:30:00")), e=int(at("11:31:00")))


@pytest.mark.parametrize(
    ("words", "options", "tasks", "failed"),
    [([], {}, 1, 0), ([], {"u": "all"}, 2, 1), (["813"], {}, 1, 1), ([], {"u": "all", "m": "ol3"}, 1, 1)],
)
def test_tasks_of_a_log(words: list[str], options: dict[str, Any], tasks: int, failed: int) -> None:
    data = base64.b64encode(zlib.compress(TASKS.encode())).decode()
    out, err, status = QueryCluster().ask("lsacct", *words, f=data, l=True, **options)
    assert (err, status) == ("", 0)
    assert f"Total number of tasks:      {tasks:>7}      Number of failed tasks:     {failed:>7}\n" in out
    assert out.count("Process ID:") == tasks


def test_no_tasks_and_no_log() -> None:
    data = base64.b64encode(zlib.compress(TASKS.encode())).decode()
    c = QueryCluster()
    assert c.ask("lsacct", "9", f=data)[::2] == ("No matching task found\n", 255)
    assert c.ask("lsacct", "x", f=data)[1:] == ("x: Bad process ID\n", 255)
    assert c.ask("lsacct")[1] == "lsacct: no task log is named; tasks of lava are jobs: see bacct\n"

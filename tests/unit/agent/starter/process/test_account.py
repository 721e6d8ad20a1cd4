"""What a part has used in the end."""

from __future__ import annotations

from agent.starter.process import account


def test_end_sums_its_tasks() -> None:
    a, b = account.Task(0, 11), account.Task(1, 12)
    a.ended((11, 0, 1.5, 0.5, 100))
    b.ended((12, 256, 2.0, 0.25, 300))
    used = account.Used()
    end = account.end_of([a, b], 256, 5.0, False, used)
    assert (end.utime, end.stime, end.maxrss_kb, end.status) == (3.5, 0.75, 300, 256)
    assert [task.rank for task in end.tasks] == [0, 1]
    used.add((13, 0, 1.0, 2.0, 400))
    end = account.end_of([a, b], 256, 5.0, False, used)
    assert (end.utime, end.stime, end.maxrss_kb) == (4.5, 2.75, 400)

"""What the tasks of a job with roles find about how often they were started."""

from __future__ import annotations

from agent.starter.part.part_tasks import RoleTasks
from agent.starter.process.spec import Spec, Template


def test_only_a_task_that_is_started_again_is_told_so() -> None:
    """A launcher starts after the workers, by an order of its own; that is its first start all the same."""
    tasks = [{"rank": 0, "env": {"LAVA_ROLE": "launcher"}, "late": True}, {"rank": 1, "env": {"LAVA_ROLE": "worker"}}]
    role = RoleTasks(Spec(Template({"argv": ["x"], "led": True}), {"uid": "u", "tasks": tasks}))
    assert [task.rank for task in role.first()] == [1]
    role.ask(0, 1, 0.0)
    assert [dict(task.env) for task in role.due()] == [{"LAVA_ROLE": "launcher"}]
    role.ask(0, 2, 0.0)
    role.ask(1, 3, 0.0)
    assert [task.env["LAVA_RESTARTS"] for task in role.due()] == ["1", "2"]


def test_a_late_order_to_end_a_task_does_not_meet_its_next_start() -> None:
    """The number of the newest start that was ordered tells."""
    role = RoleTasks(
        Spec(Template({"argv": ["x"], "led": True}), {"uid": "u", "tasks": [{"rank": 0}, {"rank": 1, "late": True}]})
    )
    assert [task.rank for task in role.first()] == [0]
    assert (role.newest(0), role.newest(1)) == (1, 0)
    role.ask(0, 2, 9.0)
    assert role.newest(0) == 2

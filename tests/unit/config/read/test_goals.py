"""GOALS of lsb.serviceclasses: what they say, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.model.guarantees import ControlAction, Goal
from config.model.problems import report
from config.read.load import load
from tests.unit.config.read.test_guarantees import loaded

DAY, NIGHT = "9:00-17:00", "17:30-8:30"


def section(*lines: str, name: str = "tofino") -> str:
    return "\n".join(("Begin ServiceClass", f"NAME = {name}", *lines, "End ServiceClass", ""))


@pytest.mark.parametrize(
    ("text", "goals"),
    [
        ("[VELOCITY 5]", (Goal("velocity", 5),)),
        ("[VELOCITY 5 timeWindow ()]", (Goal("velocity", 5),)),
        ("[velocity 30 timewindow(9:00-17:00)]", (Goal("velocity", 30, DAY),)),
        ("[THROUGHPUT 6 timeWindow (  8-12   13-17 )]", (Goal("throughput", 6, "8-12 13-17"),)),
        ("[DEADLINE timeWindow (16:15-16:45)]", (Goal("deadline", 0, "16:15-16:45"),)),
        ("[DEADLINE timeWindow (5:18:00-1:8:30 20:00-8:30)]", None),
        ("[DEADLINE timeWindow (5:18:00-1:8:30)]", (Goal("deadline", 0, "5:18:00-1:8:30"),)),
        (
            f"[VELOCITY 30 timeWindow ({NIGHT})] \\\n [VELOCITY 10 timeWindow ({DAY})]",
            (Goal("velocity", 30, NIGHT), Goal("velocity", 10, DAY)),
        ),
        ("[GUARANTEE]", ()),
    ],
)
def test_goals_and_their_windows(tmp_path: Path, text: str, goals: tuple[Goal, ...] | None) -> None:
    found = loaded(tmp_path, classes=section(f"GOALS = {text}"))
    if goals is None:
        assert "overlap" in report(found.problems)
        return
    assert not found.problems, report(found.problems)
    [service] = found.config.service_classes
    assert (service.goals, service.priority) == (goals, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[VELOCITY timeWindow ()]", "VELOCITY needs a number of jobs above 0"),
        ("[THROUGHPUT 0]", "THROUGHPUT needs a number of jobs above 0"),
        ("[DEADLINE 3 timeWindow (8:00-9:00)]", "DEADLINE has no number"),
        ("[DEADLINE]", "DEADLINE has no timeWindow that ends"),
        ("[DEADLINE timeWindow (0:00-24:00)]", "DEADLINE has no timeWindow that ends"),
        ("[DEADLINE timeWindow (8:00-14:00 11:00-15:00)]", "the windows of timeWindow (8:00-14:00 11:00-15:00) overlap"),
        ("[VELOCITY 3 timeWindow (8:00)]", "'8:00' is not a time window"),
        ("[VELOCITY 3] [THROUGHPUT 6 timeWindow (8:00-9:00)]", "a goal without a timeWindow is the only one of its class"),
        ("[VELOCITY 3 timeWindow (8:00-9:00)] [GUARANTEE]", "[GUARANTEE] does not go with goals in time"),
        ("[GUARANTEE] [VELOCITY 3]", "[GUARANTEE] does not go with goals in time"),
        ("[SPEED 3]", "'[SPEED 3]' is none of [GUARANTEE]"),
        ("VELOCITY 3", "'VELOCITY 3' is none of [GUARANTEE]"),
        ("[VELOCITY 99999999999]", "is none of [GUARANTEE]"),
    ],
)
def test_goals_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    found = loaded(tmp_path, classes=section(f"GOALS = {text}"))
    assert not found.config.service_classes
    [problem] = found.problems
    assert problem.fatal
    assert problem.text.startswith("service class tofino: GOALS: ")
    assert said in problem.text


def test_priority_and_users_of_a_class_with_goals(tmp_path: Path) -> None:
    found = loaded(
        tmp_path, classes=section("GOALS = [VELOCITY 5]", "PRIORITY = 20", "USER_GROUP = ann physicists", "DESCRIPTION = day")
    )
    assert not found.problems, report(found.problems)
    [service] = found.config.service_classes
    assert (service.priority, service.users, service.description) == (20, ("ann", "physicists"), "day")


@pytest.mark.parametrize("line", ["PRIORITY = 20", "USER_GROUP = ann", "CONTROL_ACTION = VIOLATION_PERIOD[1] CMD [true]"])
def test_what_is_not_for_guarantees(tmp_path: Path, line: str) -> None:
    found = loaded(tmp_path, classes=section("GOALS = [GUARANTEE]", line))
    name = line.partition(" ")[0]
    assert [problem.text for problem in found.problems] == [f"service class tofino: {name} is not for a class with [GUARANTEE]"]


@pytest.mark.parametrize("line", ["ACCESS_CONTROL = QUEUES[normal]", "AUTO_ATTACH = Y"])
def test_what_is_not_for_goals(tmp_path: Path, line: str) -> None:
    found = loaded(tmp_path, classes=section("GOALS = [VELOCITY 3]", line))
    name = line.partition(" ")[0]
    assert [problem.text for problem in found.problems] == [f"service class tofino: {name} is not for a class with goals in time"]
    [service] = found.config.service_classes
    assert not service.auto_attach
    assert not service.queues


def test_nothing_is_guaranteed_to_a_class_with_goals(tmp_path: Path) -> None:
    found = loaded(tmp_path, "NAME = pool\nTYPE = slots\nDISTRIBUTION = [tofino, 1]", section("GOALS = [VELOCITY 3]"))
    [problem] = found.problems
    assert problem.text == "guaranteed resource pool pool: DISTRIBUTION: no service class tofino with [GUARANTEE]"


def test_a_class_with_goals_has_a_name_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "lsb.users").write_text("Begin UserGroup\nGROUP_NAME GROUP_MEMBER\ntofino (ann)\nEnd UserGroup\n")
    loaded(tmp_path, classes=section("GOALS = [VELOCITY 3]"))
    found = load(str(tmp_path))
    assert [problem.text for problem in found.problems] == ["service class tofino: a user group has this name"]


def test_a_control_action_may_have_brackets_of_its_own(tmp_path: Path) -> None:
    line = "CONTROL_ACTION = VIOLATION_PERIOD[10] CMD [[ -w /tmp ] && echo `date` >> /tmp/log]"
    found = loaded(tmp_path, classes=section("GOALS = [VELOCITY 3]", line))
    assert not found.problems, report(found.problems)
    [service] = found.config.service_classes
    file = str(tmp_path / "lsb.serviceclasses")
    assert service.control_action == ControlAction(600, "[ -w /tmp ] && echo `date` >> /tmp/log", file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CMD [true]", "is not VIOLATION_PERIOD[minutes] CMD [command]"),
        ("VIOLATION_PERIOD[10]", "is not VIOLATION_PERIOD[minutes] CMD [command]"),
        ("VIOLATION_PERIOD[10] CMD []", "is not VIOLATION_PERIOD[minutes] CMD [command]"),
        ("VIOLATION_PERIOD[-1] CMD [true]", "is not VIOLATION_PERIOD[minutes] CMD [command]"),
        ("VIOLATION_PERIOD[0] CMD [true]", "it is at least a minute"),
    ],
)
def test_control_actions_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    found = loaded(tmp_path, classes=section("GOALS = [VELOCITY 3]", f"CONTROL_ACTION = {text}"))
    [problem] = found.problems
    assert problem.text.startswith("service class tofino: CONTROL_ACTION: ")
    assert said in problem.text


@pytest.mark.parametrize("name", ["CONSUMER", "EGO_RES_REQ", "MAX_HOST_IDLE_TIME"])
def test_what_is_of_ego_has_no_effect(tmp_path: Path, name: str) -> None:
    found = loaded(tmp_path, classes=section("GOALS = [VELOCITY 3]", f"{name} = x"))
    [problem] = found.problems
    assert not problem.fatal
    assert problem.text.startswith(f"service class tofino: {name} is not supported by lava and has no effect: hosts of a service")
    assert found.config.service_classes

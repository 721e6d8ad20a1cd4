"""podFailurePolicy and successPolicy of Kubernetes' Jobs: what an exit code of a pod means, and which indexes are enough."""

from __future__ import annotations

from dataclasses import dataclass, field

from cli.jobs import pods
from cli.jobs.fields import Fields
from cli.jobs.model import JobFile
from proto.numbers import find_number

_ACTIONS = ("FailJob", "FailIndex", "Ignore", "Count")
_MOST = 1_000_000
"""Indexes that a success rule may name."""
_LOST = "DisruptionTarget"
"""The condition of a pod whose host was lost, or which another one preempted."""


@dataclass
class PodFailures:
    """What is done when a pod fails: an action of Kubernetes each; "": no rule says so."""

    by_code: dict[int, str] = field(default_factory=dict)
    other: str = ""
    """On an exit code that is not among these."""
    lost: str = ""
    """When its host is lost."""


def read_pod_failures(spec: Fields, job: JobFile) -> PodFailures:
    """The podFailurePolicy of a Job. The first rule that fits holds, as in Kubernetes. Raises Fail for what is no rule."""
    found, codes = PodFailures(), list[tuple[bool, set[int], str]]()
    policy = spec.part("podFailurePolicy")
    for at, rule in enumerate(policy.items("rules")):
        action = rule.text("action")
        if action not in _ACTIONS:
            raise rule.fail("action", f"{action[:40]}: it is one of {', '.join(_ACTIONS)}")
        if "onExitCodes" in rule:
            asked = rule.part("onExitCodes")
            values, name = asked.words("values"), asked.text("containerName")
            operator = asked.text("operator")
            if name and name != pods.main_container(spec.part("template").part("spec")).text("name"):
                job.ignore(f"podFailurePolicy.rules[{at}] (container {name[:64]} does not run)")
                continue
            if operator not in ("In", "NotIn"):
                raise asked.fail("operator", f"{operator[:40]}: it is In or NotIn")
            codes.append((operator == "In", {_code(asked, word) for word in values}, action))
        for condition in rule.items("onPodConditions"):
            kind = condition.text("type")
            condition.any("status")  # True, which is what these rules are about
            if kind != _LOST:
                job.ignore(f"podFailurePolicy.rules[{at}] ({kind[:64]})")
            else:
                found.lost = found.lost or action
    for code in sorted({code for _, values, _ in codes for code in values}):
        found.by_code[code] = next((action for inside, values, action in codes if (code in values) is inside), "Count")
    found.other = next((action for inside, _, action in codes if not inside), "")
    return found


def _code(codes: Fields, word: str) -> int:
    if (number := find_number(word, 1, 255)) is None:
        raise codes.fail("values", f"{word[:40]} is no exit code between 1 and 255")
    return number


def read_success(spec: Fields, size: int) -> list[tuple[int, list[int]]]:
    """(how many, out of which indexes or [] for all ``size``) of each rule of a Job's successPolicy; any of them is enough."""
    policy = spec.part("successPolicy")
    found = []
    for at, rule in enumerate(policy.items("rules")):
        indexes = sorted(set(_indexes(rule, size))) if "succeededIndexes" in rule else []
        most = len(indexes) or size
        count = rule.number("succeededCount", most)
        if not indexes and "succeededCount" not in rule:
            raise policy.fail(f"rules[{at}]", "it has neither succeededIndexes nor succeededCount")
        if not 1 <= count <= most:
            raise rule.fail("succeededCount", f"{count} is not between 1 and {most}, the indexes that could succeed")
        found.append((count, indexes))
    return found


def _indexes(rule: Fields, size: int) -> list[int]:
    """``0,2-3``."""
    found: list[int] = []
    for word in rule.text("succeededIndexes").split(","):
        first, dash, last = word.partition("-")
        begin, end = (find_number(one, 0, size - 1) for one in (first, last if dash else first))
        if begin is None or end is None or begin > end:
            raise rule.fail("succeededIndexes", f"{word[:40]}: it is an index below {size}, or two with - between them")
        if len(found) + end - begin >= _MOST:
            raise rule.fail("succeededIndexes", f"more than {_MOST} indexes")
        found += range(begin, end + 1)
    return found


def runs_of(numbers: list[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of ascending numbers."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def term_of(role: str, tasks: list[int], most: int, count: int) -> str:
    """The term of a success rule: ``count`` of these tasks of a role, which has ``most``."""
    words = role
    if len(tasks) < most:
        words = ",".join(f"{role}[{first}]" if first == last else f"{role}[{first}-{last}]" for first, last in runs_of(tasks))
    return words if count == len(tasks) else f"any({count},{words})"

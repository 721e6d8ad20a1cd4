"""successPolicy of a JobSet: which of its jobs have to end well, and which pods of each, as a success rule of roles."""

from __future__ import annotations

from itertools import product
from math import prod

from cli.jobs.fields import Fields
from cli.jobs.pod_failures import read_success, term_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.jobs.jobset import Replicated

_MOST = 64
"""Alternatives of a rule."""


def success_of(policy: Fields, parts: list[Replicated]) -> str:
    """The rule: all, or any, of the jobs of some or all replicated jobs. Raises Fail for what is no policy."""
    operator, targets = policy.text("operator", "All"), policy.words("targetReplicatedJobs")
    if operator not in ("All", "Any"):
        raise policy.fail("operator", f"{operator[:40]}: it is All or Any")
    if unknown := next((name for name in targets if name not in [part.role.name for part in parts]), ""):
        raise policy.fail("targetReplicatedJobs", f"{unknown[:64]}: there is no such replicated job")
    chosen = [part for part in parts if part.role.name in targets] or parts
    rules = {part.role.name: read_success(part.spec, part.size) for part in chosen}
    plain = not any(rules.values())
    if operator == "Any":
        if plain and all(part.size == 1 for part in chosen) and (len(chosen) > 1 or chosen[0].jobs > 1):
            return f"any({','.join(part.role.name for part in chosen)})" if targets else "any"
        found = [one for part in chosen for number in range(part.jobs) for one in _terms(part, number, rules[part.role.name])]
        _check_number(policy, len(found))
        return " | ".join(found)
    if plain:
        return ",".join(part.role.name for part in chosen) if targets else "all"
    each = [_terms(part, number, some) for part in chosen if (some := rules[part.role.name]) for number in range(part.jobs)]
    whole = [part.role.name for part in chosen if not rules[part.role.name]]
    _check_number(policy, prod(map(len, each)))
    return " | ".join(_joined([*whole, *terms]) for terms in product(*each))


def _check_number(policy: Fields, alternatives: int) -> None:
    if alternatives > _MOST:
        raise policy.fail("operator", f"{alternatives} jobs and rules are alternatives of which any is enough: at most {_MOST}")


def _terms(part: Replicated, number: int, rules: list[tuple[int, list[int]]]) -> list[str]:
    """The success of one job, a term for each of its rules, of which any is enough; without rules that of all its pods."""
    first, found = number * part.size, []
    for count, indexes in rules or [(part.size, [])]:
        tasks = [first + index for index in indexes or range(part.size)]
        found.append(term_of(part.role.name, tasks, part.role.count, count))
    return found


def _joined(terms: list[str]) -> str:
    """Terms of which all have to hold."""
    plain = [term for term in terms if "(" not in term]
    return " & ".join([*([",".join(plain)] if plain else []), *(term for term in terms if "(" in term)])

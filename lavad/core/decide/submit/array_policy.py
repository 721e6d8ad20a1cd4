"""When a job array with roles is over before all of its elements are: what its policy says is read and checked."""

from __future__ import annotations

import re

from lavad.core.job.spec import Enough, Policy
from lavad.core.lang.asks import Refused
from lavad.core.lang.job_names import ArraySpec
from lavad.core.lang.ranges import Ranges

_ENOUGH = re.compile(r"(\d{1,10})?(?:\[([\d,:-]{1,8000})\])?", re.ASCII)


def read_enough(words: list[str]) -> tuple[Enough, ...]:
    """``3`` elements, all of ``[1,4-6]``, ``2[1-4]``: two of these. Raises Refused."""
    return tuple(_enough(word) for word in words)


def _enough(word: str) -> Enough:
    match = _ENOUGH.fullmatch(word)
    if match is None or not word:
        raise Refused(f"array_success {word[:64]}: it is COUNT, [INDICES] or COUNT[INDICES]")
    try:
        indices = Ranges.parse(match[2]) if match[2] else Ranges()
    except ValueError as error:
        raise Refused(f"array_success {word[:64]}: {error}") from None
    count = int(match[1]) if match[1] else len(indices)
    if count < 1 or (indices and count > len(indices)):
        raise Refused(f"array_success {word[:64]}: {count} is not between 1 and the number of elements that could succeed")
    return Enough(count=count, indices=indices)


def check_array(policy: Policy, name: ArraySpec | str) -> None:
    """Whether what the policy says of an array can hold for this one; raises Refused."""
    fields = [
        field
        for field in ("array_backoff", "array_failures", "array_success")
        if getattr(policy, field) != getattr(_PLAIN, field)
    ]
    if not fields:
        return
    if isinstance(name, str):
        raise Refused(f"{fields[0]}: the job is no array: give it a name such as x[1-10]")
    for one in policy.array_success:
        if not one.indices.is_within(name.indices):
            raise Refused(f"array_success [{one.indices.text()}]: the array has the elements {name.indices.text()}")
        if one.count > len(name.indices):
            raise Refused(f"array_success {one.count}: the array has {len(name.indices)} elements")


_PLAIN = Policy()

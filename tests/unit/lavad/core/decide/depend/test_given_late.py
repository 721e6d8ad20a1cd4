"""A condition says the same of an array whether it is given before the first of its elements ends, or after some have."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from lavad.core import events as ev
from lavad.core.decide.base.resolve import NeedsLookup, StoredJobs
from lavad.core.job.depend import BLOCKED, Ended, exit_code
from lavad.core.lang.states import JobState
from tests.unit.lavad.core.decide.depend.test_depend import Waiters

End = tuple[int, int]
"""Wait status, and that of the post-execution command."""
FORMS = (
    "done({})",
    "ended({})",
    "exit({})",
    "exit({}, 3)",
    "numdone({}, >= 2)",
    "numexit({}, >= 2)",
    "numended({}, *)",
    "post_done({})",
    "post_err({})",
    "done({}[2])",
    "exit({}[1-2])",
    "done({}) || post_done({})",
)
ENDS: st.SearchStrategy[End] = st.sampled_from([(0, 0), (0, 0), (0, 256), (256, 0), (768, 0), (9, 256)])


class Told(Waiters):
    """With what the store has of the elements that have ended."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[int, Ended] = {}

    def end_element(self, job: int, index: int, end: End) -> None:
        status, post = end
        key = index << 32 | job
        state = JobState.EXIT if status else JobState.DONE
        self.apply(ev.JobFinished(at=self.now, key=key, state=state, status=status, post=post))
        code = exit_code(status) if status else None
        self.stored[job] = self.stored.get(job, Ended()).with_element(index, code, bool(post))
        self.settle()

    def given(self, text: str) -> int:
        """As bsub does it: what is missing is read, and the decision made again."""
        try:
            return self.depend(text)
        except NeedsLookup as missing:
            return self.depend(text, known=StoredJobs(elements={job: self.stored[job] for job in missing.elements}))


@given(st.lists(ENDS, min_size=2, max_size=4), st.integers(1, 3), st.sampled_from(FORMS))
@example([(256, 0), (0, 0)], 1, "done({})")
@example([(0, 0), (0, 0)], 1, "numdone({}, >= 2)")
@example([(0, 256), (0, 0)], 1, "post_done({})")
def test_it_says_the_same_given_late(ends: list[End], late: int, form: str) -> None:
    assert answers(ends, 0, form)[late:] == answers(ends, late, form)[late:]


def answers(ends: list[End], at: int, form: str) -> list[int]:
    """How the condition stands after each end, where it was given when ``at`` elements had ended; before that, BLOCKED."""
    world = Told()
    array = world.submit(array=f"1-{len(ends)}")
    waits, found = 0, []
    for number, end in enumerate(ends):
        if number == min(at, len(ends) - 1):
            waits = world.given(form.replace("{}", str(array)))
        world.end_element(array, number + 1, end)
        found.append(world.blocked(waits) if waits else BLOCKED)
    assert array not in world.cluster.arrays.rows
    return found

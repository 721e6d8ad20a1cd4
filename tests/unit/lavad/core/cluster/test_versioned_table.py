"""The queue of a class keeps its jobs in the order in which they came, in little memory while that is the order of dispatch."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from lavad.core.cluster.versioned_table import IN_ORDER, Pending
from lavad.core.lang.ids import key_of

_KEYS = st.one_of(st.integers(1, 12), st.sampled_from([key_of(3, 1), key_of(3, 2), key_of(9, 1)]))
_STEPS = st.lists(st.one_of(_KEYS, st.tuples(_KEYS, st.booleans())))


@given(_STEPS, st.integers(0, 12))
def test_it_is_a_list_of_keys_each_with_a_number_of_its_coming(steps: list[int | tuple[int, bool]], seen: int) -> None:
    """A step: a key leaves, or one comes, in its place or not."""
    pending, known = Pending(), dict[int, int]()
    ordered, touched = True, 0
    for step in steps:
        if isinstance(step, int):
            touched += known.pop(step, 0) > 0
            pending.discard(step)
        elif step[0] not in known:
            key, in_order = step
            # ids may go back where the clock did: in dispatch order, and not by id
            touched, ordered = touched + 1, ordered and in_order
            known[key] = IN_ORDER if ordered else touched
            pending.add(key, in_order)
            assert pending.newest() == key
        assert ([*pending], len(pending)) == ([*known], len(known))
        assert (pending.ordered, pending.touched) == (ordered, touched)
        if known:
            assert pending.newest() == next(reversed(known))
        only = pending.only()
        assert only is None or [*known] == [only]
        assert only is not None or len(known) != 1 or known != dict.fromkeys(known, IN_ORDER) or pending._later
    assert {key: pending.came(key) for key in [*known, 99]} == known | {99: 0}
    assert sorted(pending.came_after(seen)) == sorted((key, came) for key, came in known.items() if came > seen)
    copy = pending.copied()
    copy.discard(5)
    assert [*pending] == [*known]
    assert [*copy] == [key for key in known if key != 5]


def test_twenty_thousand_jobs_in_order_take_a_bit_each() -> None:
    tracemalloc.start()
    pending = Pending()
    for key in range(1, 20_001):
        pending.add(key, True)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert size < 30_000
    assert next(iter(pending)) == 1

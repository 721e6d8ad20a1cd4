"""Which limits of lsb.resources apply to a job, found by the names that they are for, beside a look at each of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from config.model.cluster import Limit
from lavad.core.job.spec import Spec
from lavad.core.site.conf import Conf, Params
from lavad.core.site.limit_book import LimitBook
from tests.support.examples import examples

GROUPS = (("dev", ("ann", "bob")), ("every", ("all",)), ("rest", ("all", "~dev")))


def lists(*names: str) -> st.SearchStrategy[tuple[str, ...]]:
    words = st.tuples(st.sampled_from(("", "", "~")), st.sampled_from(("all", *names))).map("".join)
    return st.lists(words, max_size=3).map(tuple)


LIMITS = st.lists(
    st.builds(
        Limit,
        name=st.just("l"),
        users=lists("ann", "bob", "eve", "dev", "every", "rest"),
        projects=lists("p", "q"),
        queues=lists("normal", "night"),
        apps=lists("x", "y"),
        per_user=st.booleans(),
        slots=st.just(3),
    ),
    max_size=6,
)
SPECS = st.builds(
    Spec,
    user=st.sampled_from(("ann", "bob", "eve")),
    queue=st.sampled_from(("normal", "night")),
    project=st.sampled_from(("p", "q", "")),
    app=st.sampled_from(("x", "y", "")),
    user_group=st.sampled_from(("", "dev", "rest", "~dev")),
)


@given(LIMITS, st.lists(SPECS, min_size=1, max_size=5), st.booleans())
@settings(max_examples=examples(500), deadline=None)
def test_the_limits_of_a_job_are_those_of_all_that_apply_to_it(limits: list[Limit], specs: list[Spec], one_group: bool) -> None:
    params = Params(enforce_one_ug_limits=one_group)
    book = LimitBook(Conf(limits=tuple(limits), user_groups=GROUPS, params=params))
    for spec in specs:
        assert [at for at, _, _ in book.applying(spec)] == [at for at in range(len(limits)) if book.applies(at, spec)]

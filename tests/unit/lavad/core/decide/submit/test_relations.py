"""Names of projects and user groups have a length that a database can hold as a key; -G names a group, or leaves some out."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import FairShare
from lavad.core.decide.submit.relations import MAX_OWNER
from lavad.core.lang.asks import Refused
from tests.support.worlds.bench import Bench


def test_a_name_that_is_too_long_is_refused(bench: Bench) -> None:
    with pytest.raises(Refused, match="Project name is too long"):
        bench.bsub(P="é" * MAX_OWNER)
    with pytest.raises(Refused, match="User group name is too long"):
        bench.bsub(G="g" * (MAX_OWNER + 1))


@pytest.mark.parametrize("given", ["dev ~ops", "~ops dev", "~ops dev ~lab"])
def test_a_group_and_groups_to_leave_out_exclude_each_other(bench: Bench, given: str) -> None:
    with pytest.raises(Refused, match="cannot be given together"):
        bench.bsub(G=given)


def test_groups_to_leave_out_are_kept_as_words(bench: Bench) -> None:
    assert bench.spec_of(G="  ~ops   ~lab ").user_group == "~ops ~lab"


@pytest.mark.parametrize(("given", "taken"), [("", True), ("~ops", True), ("~dev", False), ("~dev ~ops", False)])
def test_a_job_needs_a_share_that_it_does_not_leave_out(bench: Bench, given: str, taken: bool) -> None:
    bench.queues(QueueConfig(name="shared", share=FairShare(shares=(("dev", 3), ("bob", 1)))))
    bench.configure(user_groups=(("dev", ("alice",)), ("ops", ("alice", "bob"))))
    if taken:
        assert bench.bsub(q="shared", G=given)["queue"] == "shared"
    else:
        with pytest.raises(Refused, match="alice has no share of it"):
            bench.bsub(q="shared", G=given)


def test_the_longest_project(bench: Bench) -> None:
    job = bench.bsub(P="p" * MAX_OWNER)["job"]
    assert bench.cluster.spec_of(job).project == "p" * MAX_OWNER

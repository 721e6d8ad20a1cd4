"""Names of projects and user groups have a length that a database can hold as a key; -G names a group, or leaves some out."""

from __future__ import annotations

import pytest

from config.model.queue import QueueConfig
from config.model.values import FairShare
from lavad.core.decide.submit.relations import MAX_OWNER
from lavad.core.lang.asks import Refused
from tests.support.worlds.bench import ADMIN, Bench
from tests.unit.lavad.core.decide.modify.test_modify import bmod


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


def test_a_user_group_is_one_that_the_user_is_in(bench: Bench) -> None:
    """As in LSF, of bmod by an administrator for the job's user; groups in groups count."""
    bench.configure(user_groups=(("dev", ("alice",)), ("ops", ("bob",)), ("both", ("dev", "ops")), ("most", ("all", "~alice"))))
    assert [bench.spec_of(G=group).user_group for group in ("dev", "both", "")] == ["dev", "both", ""]
    with pytest.raises(Refused, match=r"^nosuch: Bad user group name$"):
        bench.bsub(G="nosuch")
    with pytest.raises(Refused, match=r"^alice: Bad user group name$"):
        bench.bsub(G="alice")
    for group in ("ops", "most"):
        with pytest.raises(Refused, match=rf"^{group}: User not in the specified user group$"):
            bench.bsub(G=group)
    job = bench.bsub()["job"]
    with pytest.raises(Refused, match=r"^ops: User not in the specified user group$"):
        bmod(bench, job, ADMIN, G="ops")


def test_where_there_are_no_user_groups_the_name_is_kept_and_nothing_more(bench: Bench) -> None:
    answer = bench.bsub(G="bank")
    assert answer["notices"] == ["-G bank: no user groups are configured (lsb.users); it is kept as a name alone"]
    assert bench.cluster.spec_of(answer["job"]).user_group == "bank"


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

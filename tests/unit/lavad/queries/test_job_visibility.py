"""SECURE_JOB_INFO_LEVEL, ENABLE_JOB_INFO_BY_ADMIN_ROLE and SECURE_INFODIR_USER_ACCESS in the listings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lavad.core import events as ev
from lavad.core.lang.asks import Caller
from tests.support.worlds.query_cluster import ADMIN, ALICE, BOB, QueryCluster, at

CAROL = Caller(user="carol", uid=1003, host="ol1")
DAVE = Caller(user="dave", uid=1004, host="ol1")
ROOT = Caller(user="root", uid=0, host="ol1")
BOSS = Caller(user="boss", uid=1005, host="ol1")
Groups = tuple[tuple[str, tuple[str, ...]], ...]
OWN, SUMMARY, DETAIL = 1, 2, 3
"""bob's job 1, running and with a message."""


TEAM = (("team", ("bob", "carol")),)


def site(level: int, access: str = "N", roles: tuple[str, ...] = (), groups: Groups = TEAM) -> QueryCluster:
    """bob and carol are in one group, dave in none; dave administers bob's queue, boss is the second administrator."""
    cluster = QueryCluster()
    conf = cluster.cluster.conf
    params = replace(
        conf.params,
        secure_job_info_level=level,
        secure_infodir_user_access=access,
        enable_job_info_by_admin_role=roles,
        user_group_admins=(("team", ("eve",)),),
    )
    queues = tuple(replace(queue, administrators=("dave",)) if queue.name == "normal" else queue for queue in conf.queues)
    new = replace(conf, params=params, queues=queues, admins=("openlava", "boss"), user_groups=groups)
    cluster.feed(ev.Configured(at=at("11:32:00"), conf=new))
    cluster.submit(1, command="./hidden", user="bob", project="secretproject")
    cluster.start(1)
    cluster.submit(2, command="./over", user="bob")
    cluster.start(2)
    cluster.finish(2)
    return cluster


def sight(cluster: QueryCluster, caller: Caller) -> int:
    """What bjobs shows of bob's running job: nothing, a line, or everything."""
    short = "bob" in cluster.ask("bjobs", caller=caller, u="all")[0]
    long = "./hidden" in cluster.ask("bjobs", "1", caller=caller, l=True)[0]
    assert short or not long
    return DETAIL if long else SUMMARY if short else 0


@pytest.mark.parametrize(("level", "in_group", "others"), [(0, 3, 3), (1, 3, 2), (2, 3, 0), (3, 2, 0), (4, 0, 0), (5, 2, 2)])
def test_the_levels_are_those_of_lsf(level: int, in_group: int, others: int) -> None:
    cluster = site(level)
    assert [sight(cluster, caller) for caller in (BOB, CAROL, DAVE)] == [DETAIL, in_group, others]
    assert [sight(cluster, caller) for caller in (ADMIN, ROOT)] == [DETAIL, DETAIL]
    assert sight(cluster, BOSS) == others, "other administrators are like users"


@pytest.mark.parametrize(
    ("groups", "seen"),
    [
        ((("team", ("inner", "carol")), ("inner", ("bob", "dave"))), (DETAIL, DETAIL)),
        ((("team", ("inner", "~dave", "carol", "bob")), ("inner", ("dave",))), (DETAIL, 0)),
        ((("team", ("bob",)), ("other", ("carol", "dave"))), (0, 0)),
        ((("every", ("all",)), ("most", ("all", "~eve"))), (0, 0)),
    ],
)
def test_who_is_in_a_group_with_the_owner_is_as_the_group_says(groups: Groups, seen: tuple[int, int]) -> None:
    """``~`` leaves out, and a group of everybody makes nobody known to each other."""
    cluster = site(2, groups=groups)
    assert tuple(sight(cluster, caller) for caller in (CAROL, DAVE)) == seen


@pytest.mark.parametrize(
    ("roles", "who"),
    [(("CLUSTER",), BOSS), (("QUEUE",), DAVE), (("USERGROUP",), Caller(user="eve", uid=1006, host="ol1"))],
)
def test_administrators_see_what_they_administer_where_the_site_says_so(roles: tuple[str, ...], who: Caller) -> None:
    assert sight(site(4), who) == 0
    assert sight(site(4, roles=roles), who) == DETAIL
    assert sight(site(4, roles=roles), ALICE) == 0


def test_fields_beyond_the_summary_are_dashes() -> None:
    shown: dict[str, Any] = {"o": "jobid user proj_name command exec_host sub_cwd delimiter=';'", "noheader": True, "u": "all"}
    assert site(1).ask("bjobs", caller=DAVE, **shown)[0] == "1;bob;secretproject;-;ol2;-\n"
    assert "./hidden" in site(1).ask("bjobs", caller=BOB, **shown)[0]


def test_a_job_of_a_group_belongs_to_that_group_alone() -> None:
    cluster = site(2)
    cluster.submit(3, command="./other", user="bob", user_group="elsewhere")
    assert "./other" not in cluster.ask("bjobs", "3", caller=CAROL, l=True)[0]
    assert "./hidden" in cluster.ask("bjobs", "1", caller=CAROL, l=True)[0]


@pytest.mark.parametrize("command", ["bjdepinfo", "bread", "bstatus"])
def test_relations_and_messages_need_the_right_to_details(command: str) -> None:
    hidden = site(1).ask(command, "1", caller=DAVE)
    unknown = site(1).ask(command, "99", caller=DAVE)
    assert [text.replace("99", "1") for text in unknown[:2]] == list(hidden[:2])
    assert site(1).ask(command, "1", caller=CAROL) != hidden


def test_history_follows_the_level_only_where_it_is_restricted() -> None:
    def seen(access: str, caller: Caller) -> list[bool]:
        cluster = site(4, access)
        table = cluster.ask("bhist", caller=caller, a=True, u="all")[0]
        events = cluster.ask("bhist", caller=caller, t=True, T=".-1,.")[0]
        return ["2       bob" in table, "Job <2>" in events]

    assert seen("N", DAVE) == [True, True]
    assert seen("G", DAVE) == [False, False]
    assert seen("Y", DAVE) == [False, False]
    assert seen("G", BOB) == [True, True]
    assert seen("Y", ADMIN) == [True, True]
    assert "permission denied" in site(4, "Y").ask("bhist", "2", caller=BOB)[1]

"""Tokens of users: remembered, called back by whom they are, forgotten in time."""

from __future__ import annotations

import pytest

from lavad.core.cluster.cluster import Cluster
from lavad.core.decide.base.decided import Decided
from lavad.core.decide.control.tokens import MOST, make, over, revoke, shown
from lavad.core.events.apply import apply
from lavad.core.lang.asks import Caller, Refused
from lavad.core.lang.token_ask import ListTokens, RevokeTokens
from lavad.core.site.conf import Conf
from lavad.core.site.tokens import IssuedToken

NOW = 1000.0
ANN, BOB, BOSS = (Caller(name, uid, "h1") for name, uid in (("ann", 1), ("bob", 2), ("boss", 3)))


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.configure(Conf(admins=("boss",)))
    for user, ident, ends in (("ann", "a1", 2000.0), ("ann", "a2", 1500.0), ("bob", "b1", 1800.0)):
        do(made, make(made, user, IssuedToken(ident, "api", NOW, ends, "h1"), NOW))
    return made


def do(cluster: Cluster, decided: Decided) -> Decided:
    for event in decided.events:
        apply(cluster, event)
    return decided


def left(cluster: Cluster) -> set[str]:
    return {ident for row in cluster.tokens.rows.values() for ident in row.tokens}


def test_a_user_sees_their_own_and_an_administrator_all(cluster: Cluster) -> None:
    assert [row["id"] for row in shown(cluster, ListTokens(), ANN, NOW)] == ["a2", "a1"]
    assert [row["id"] for row in shown(cluster, ListTokens(), ANN, 1600.0)] == ["a1"]
    assert [row["id"] for row in shown(cluster, ListTokens(user="all"), BOSS, NOW)] == ["a2", "b1", "a1"]
    assert [row["user"] for row in shown(cluster, ListTokens(user="bob"), BOSS, NOW)] == ["bob"]
    assert shown(cluster, ListTokens(), BOSS, NOW) == []
    for name in ("bob", "all"):
        with pytest.raises(Refused, match="permission denied"):
            shown(cluster, ListTokens(user=name), ANN, NOW)


def test_a_user_calls_back_their_own_and_an_administrator_all(cluster: Cluster) -> None:
    answer = do(cluster, revoke(cluster, RevokeTokens(ids=["a1", "b1", "zz"]), ANN, NOW)).answer
    assert [(row["id"], row["ok"], row.get("why")) for row in answer["results"]] == [
        ("a1", True, None),
        ("b1", False, "User permission denied"),
        ("zz", False, "Token <zz> is not found"),
    ]
    assert left(cluster) == {"a2", "b1"}
    do(cluster, revoke(cluster, RevokeTokens(ids=["b1"]), BOSS, NOW))
    assert left(cluster) == {"a2"}
    with pytest.raises(Refused, match="No token is named"):
        revoke(cluster, RevokeTokens(), ANN, NOW)


def test_all_are_those_of_one_user_or_of_everybody(cluster: Cluster) -> None:
    for user in ("ann", "all"):
        with pytest.raises(Refused, match="permission denied"):
            revoke(cluster, RevokeTokens(every=True, user=user), BOB, NOW)
    do(cluster, revoke(cluster, RevokeTokens(every=True), BOB, NOW))
    assert left(cluster) == {"a1", "a2"}
    do(cluster, revoke(cluster, RevokeTokens(every=True, user="all"), BOSS, NOW))
    assert cluster.tokens.rows == {}


def test_what_has_ended_is_forgotten(cluster: Cluster) -> None:
    assert do(cluster, over(cluster, 1499.0)).events == []
    do(cluster, over(cluster, 1800.0))
    assert left(cluster) == {"a1"}
    do(cluster, over(cluster, 2000.0))
    assert cluster.tokens.rows == {}


def test_a_user_has_so_many_of_a_kind(cluster: Cluster) -> None:
    for kind, most in MOST.items():
        for number in range(most + 1):
            token = IssuedToken(f"{kind}{number}", kind, NOW + number, 9e9)
            if kind == "api" and number == most:
                with pytest.raises(Refused, match="100 tokens that have not ended"):
                    make(cluster, "eve", token, NOW)
            else:
                do(cluster, make(cluster, "eve", token, NOW))
    kept = cluster.tokens.rows["eve"].tokens
    assert ("link0" in kept, "link1" in kept, "session0" in kept, "session50" in kept) == (False, True, False, True)
    assert len(kept) == sum(MOST.values())
